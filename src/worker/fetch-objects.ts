import type { Knex } from "knex";
import { assess } from "../alerts/assess.ts";
import type { AlertDesk } from "../alerts/desk.ts";
import { postponeFetch, settleFetch, takeDueFetches, wantFetches } from "../inbox/fetches.ts";
import type { DueFetch } from "../inbox/fetches.ts";
import { applyObservations, applyStates } from "../mirror/apply.ts";
import { customerAbsence } from "../mirror/customer.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { fetchRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import type { ServiceClient } from "../service/client.ts";
import { ServiceUnavailableError } from "../service/service-errors.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { readsAfter, readsForAlerts, thinObjects } from "./conclusions.ts";
import { reasonOf, withoutValues } from "./event-fault.ts";
import { readObject } from "./read-object.ts";
import type { ReadPage } from "./read-object.ts";
import { withRetries } from "../platform/transaction-retry.ts";

export interface FetchDeps {
  db: Knex;
  client: Pick<ServiceClient, "get" | "listPages">;
  log: Log;
  random: Random;
  alerts: AlertDesk;
  /** How far apart two answers "unknown" must be to mean that a customer was deleted. */
  missingGraceMs: number;
}

const atOnce = 8;
/** Longer than a read with all its repeats may take. */
const leaseSeconds = 120;
/** The service may be a moment behind its own events; after this many useless answers the read is given up. */
const maxUseless = 6;

/** Reads and applies what is wanted and due; says how many. One call at a time is enough for a process. */
export async function fetchDueObjects(deps: FetchDeps): Promise<number> {
  const due = await takeDueFetches(deps.db, { limit: atOnce, leaseSeconds });
  await Promise.all(due.map((fetch) => fetchOne(deps, fetch)));
  return due.length;
}

async function fetchOne(deps: FetchDeps, fetch: DueFetch): Promise<void> {
  const { db, client, log } = deps;
  try {
    const result = await readObject({ client, cause: "fetch" }, fetch);
    if (result.kind === "missing") return await applyMissing(deps, fetch, result.date);
    if (result.kind === "unreadable") return await giveUpOrRetry(deps, fetch, "another object");
    let date = new Date(0);
    for await (const page of result.pages) {
      const problem = await applyPage(deps, fetch, page);
      if (problem !== null) return await giveUpOrRetry(deps, fetch, problem);
      ({ date } = page);
    }
    await conclude(deps, fetch, date);
  } catch (error) {
    const askedMs = error instanceof ServiceUnavailableError ? (error.retryAfterMs ?? 0) : 0;
    const delayMs = Math.max(askedMs, backoffMs(deps, fetch));
    const { resource, id, missingSince } = fetch;
    log.warn({ failure: withoutValues(error), resource, id, delayMs }, "a read failed");
    await postponeFetch(db, fetch, { delayMs, error: reasonOf(error), missingSince }).catch(
      (lost: unknown) => {
        log.warn(
          { failure: withoutValues(lost) },
          "a read could not be put off: its lease will end",
        );
      },
    );
  }
}

const backoffMs = ({ random }: FetchDeps, { attempts }: DueFetch): number =>
  retryDelayMs(fetchRetryPolicy, attempts, random) ?? fetchRetryPolicy.maxDelayMs;

/** Applies one answer, with the reads that it asks for. Says why, when it does not show what was wanted. */
async function applyPage(
  deps: FetchDeps,
  { resource, id }: DueFetch,
  { observations, unread }: ReadPage,
): Promise<string | null> {
  const { outcomes } = await withRetries(deps, () =>
    deps.db.transaction(async (trx) => {
      const applied = await applyObservations(trx, observations);
      const thin = thinObjects(observations, applied.outcomes);
      const others = thin.filter((object) => object.resource !== resource || object.id !== id);
      const { ties } = applied;
      const wanted = readsAfter({ ties, unread: [...applied.unread, ...unread, ...others] });
      const missing = await assess(trx, deps.alerts, applied.written, "read");
      await wantFetches(trx, [...wanted, ...readsForAlerts(missing)]);
      return applied;
    }),
  );
  const problems = outcomes.flatMap((outcome, n) => {
    const shown = observations[n]?.resource;
    if (outcome.outcome === "unreadable") return [{ shown, problem: outcome.reason }];
    const isThin = outcome.outcome === "thin" && shown === resource;
    return isThin ? [{ shown, problem: "required fields are missing" }] : [];
  });
  for (const { shown, problem } of problems) {
    deps.log.warn({ resource: shown, problem }, "the service's answer cannot be read");
  }
  return problems.find(({ shown }) => shown === resource)?.problem ?? null;
}

async function conclude({ db }: FetchDeps, fetch: DueFetch, date: Date): Promise<void> {
  const { notBefore } = fetch;
  if (notBefore === null || date >= notBefore) return settleFetch(db, fetch);
  const delayMs = Math.min(60_000, notBefore.getTime() - date.getTime() + 100);
  await postponeFetch(db, fetch, { delayMs, error: "answered before the tie can be settled" });
}

/** For answers that a repeat may better, but not for ever. */
async function giveUpOrRetry(deps: FetchDeps, fetch: DueFetch, problem: string): Promise<void> {
  const { resource, id, reason, attempts } = fetch;
  if (attempts < maxUseless) {
    return postponeFetch(deps.db, fetch, { delayMs: backoffMs(deps, fetch), error: problem });
  }
  // A dispute may name its own id where the order's was looked for.
  deps.log[reason === "dispute" ? "info" : "error"](
    { resource, id, problem },
    "a read is given up",
  );
  await settleFetch(deps.db, fetch);
}

async function applyMissing(deps: FetchDeps, fetch: DueFetch, date: Date): Promise<void> {
  const { db, missingGraceMs } = deps;
  if (fetch.resource !== "customer") return giveUpOrRetry(deps, fetch, "unknown at the service");
  const missingSince = fetch.missingSince ?? date;
  const goneForMs = date.getTime() - missingSince.getTime();
  if (fetch.missingSince === null || goneForMs < missingGraceMs) {
    const delayMs = Math.max(1_000, missingGraceMs - goneForMs);
    return postponeFetch(db, fetch, { delayMs, error: "unknown at the service", missingSince });
  }
  const at = canonicalTimestamp(date.toISOString());
  if (at === null) throw new TypeError("the service's Date is none");
  await withRetries(deps, () =>
    db.transaction(async (trx) => {
      await applyStates(trx, [customerAbsence(fetch.id, at, "fetch")]);
      await settleFetch(trx, fetch);
    }),
  );
}
