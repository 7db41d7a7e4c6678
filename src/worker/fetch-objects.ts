import type { Knex } from "knex";
import { postponeFetch, settleFetch, takeDueFetches } from "../inbox/fetches.ts";
import type { DueFetch } from "../inbox/fetches.ts";
import { applyObservations, applyStates } from "../mirror/apply.ts";
import { customerAbsence } from "../mirror/customer.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { fetchRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import type { ServiceClient } from "../service/client.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { readObject } from "./read-object.ts";
import type { ReadResult } from "./read-object.ts";
import { withRetries } from "./transaction-retry.ts";

export interface FetchDeps {
  db: Knex;
  client: Pick<ServiceClient, "get" | "listPages">;
  log: Log;
  random: Random;
  /** How far apart two answers "unknown" must be to mean that a customer was deleted. */
  missingGraceMs: number;
}

const atOnce = 8;
/** Longer than a read with all its repeats may take. */
const leaseSeconds = 120;
/** The service may be a moment behind its own events; after this many answers "unknown" the id is given up. */
const maxMissing = 6;

/** Reads and applies what is wanted and due; says how many. One call at a time is enough for a process. */
export async function fetchDueObjects(deps: FetchDeps): Promise<number> {
  const due = await takeDueFetches(deps.db, { limit: atOnce, leaseSeconds });
  await Promise.all(due.map((fetch) => fetchOne(deps, fetch)));
  return due.length;
}

async function fetchOne(deps: FetchDeps, fetch: DueFetch): Promise<void> {
  const { db, client, log, random } = deps;
  try {
    const result = await readObject({ client, cause: "fetch" }, fetch);
    await (result.kind === "missing"
      ? applyMissing(deps, fetch, result.date)
      : applyFound(deps, fetch, result));
  } catch (err) {
    const delayMs = retryDelayMs(fetchRetryPolicy, fetch.attempts, random) ?? 0;
    log.warn({ err, resource: fetch.resource, id: fetch.id, delayMs }, "a read failed");
    const error = err instanceof Error ? err.name : "unknown error";
    const { missingSince } = fetch;
    await postponeFetch(db, fetch, { delayMs, error, missingSince }).catch((lost: unknown) => {
      log.warn({ err: lost }, "a read could not be put off: its lease will end");
    });
  }
}

async function applyFound(
  deps: FetchDeps,
  fetch: DueFetch,
  { observations, date }: Extract<ReadResult, { kind: "found" }>,
): Promise<void> {
  const { db, log } = deps;
  const isTooEarly = fetch.notBefore !== null && date < fetch.notBefore;
  const unreadable = await withRetries(deps, () =>
    db.transaction(async (trx) => {
      const { outcomes } = await applyObservations(trx, observations);
      if (!isTooEarly) await settleFetch(trx, fetch);
      return outcomes.filter(({ outcome }) => outcome === "unreadable" || outcome === "thin").length;
    }),
  );
  if (unreadable > 0) {
    log.error({ resource: fetch.resource, id: fetch.id, unreadable }, "the service's answer cannot be read");
  }
  if (isTooEarly && fetch.notBefore !== null) {
    const delayMs = Math.min(60_000, fetch.notBefore.getTime() - date.getTime() + 100);
    await postponeFetch(db, fetch, { delayMs, error: "answered before the tie can be settled" });
  }
}

async function applyMissing(deps: FetchDeps, fetch: DueFetch, date: Date): Promise<void> {
  const { db, log, missingGraceMs, random } = deps;
  const missingSince = fetch.missingSince ?? date;
  const isGone = date.getTime() - missingSince.getTime() >= missingGraceMs;
  if (fetch.resource === "customer" && fetch.missingSince !== null && isGone) {
    const at = canonicalTimestamp(date.toISOString()) ?? "";
    await withRetries(deps, () =>
      db.transaction(async (trx) => {
        await applyStates(trx, [customerAbsence(fetch.id, at, "fetch")]);
        await settleFetch(trx, fetch);
      }),
    );
    return;
  }
  if (fetch.resource !== "customer" && fetch.attempts >= maxMissing) {
    log.error({ resource: fetch.resource, id: fetch.id }, "the service does not know an announced object");
    await settleFetch(db, fetch);
    return;
  }
  const delayMs =
    fetch.resource === "customer"
      ? Math.max(1_000, missingSince.getTime() + missingGraceMs - date.getTime())
      : (retryDelayMs(fetchRetryPolicy, fetch.attempts, random) ?? 0);
  await postponeFetch(db, fetch, { delayMs, error: "unknown at the service", missingSince });
}
