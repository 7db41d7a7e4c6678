import { postponeFetch, settleFetch, takeDueFetches } from "../inbox/fetches.ts";
import type { DueFetch } from "../inbox/fetches.ts";
import { applyStates } from "../mirror/apply.ts";
import { customerAbsence } from "../mirror/customer.ts";
import { withRetries } from "../platform/transaction-retry.ts";
import { withBelievedDates } from "../service/believed-dates.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { applyAnswer } from "./apply-answer.ts";
import { disputedTransactions } from "./conclusions.ts";
import type { FetchDeps } from "./fetch-deps.ts";
import { conclude, giveUpOrRetry, orPutOff } from "./put-off-reads.ts";
import { readObject } from "./read-object.ts";

const atOnce = 8;
/** Longer than a read with all its repeats may take. */
const leaseSeconds = 120;

/** Reads and applies the objects that are wanted and due; says how many. One call at a time is enough for a process. */
export async function fetchDueObjects(deps: FetchDeps): Promise<number> {
  const due = await takeDueFetches(deps.db, {
    except: disputedTransactions.resource,
    limit: atOnce,
    leaseSeconds,
  });
  await Promise.all(due.map((fetch) => orPutOff(deps, fetch, () => fetchOne(deps, fetch))));
  return due.length;
}

async function fetchOne(deps: FetchDeps, fetch: DueFetch): Promise<void> {
  const result = await readObject(
    { client: withBelievedDates(deps.client, deps.alerts.clock), cause: "fetch" },
    fetch,
  );
  if (result.kind === "missing") return await applyMissing(deps, fetch, result.date);
  if (result.kind === "unreadable") return await giveUpOrRetry(deps, fetch, "another object");
  const problem = await applyAnswer(deps, fetch, result.page);
  if (problem !== null) return await giveUpOrRetry(deps, fetch, problem);
  await conclude(deps, fetch, result.page.date);
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
