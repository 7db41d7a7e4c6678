import { withIsolatedAlerts } from "../alerts/isolated-alerts.ts";
import { wantFetches } from "../inbox/fetches.ts";
import type { DueFetch } from "../inbox/fetches.ts";
import { applyObservations } from "../mirror/apply.ts";
import type { ObjectKey, Observation } from "../mirror/observation.ts";
import { reasonOf } from "../platform/loggable-error.ts";
import { inTransaction } from "../platform/transaction.ts";
import { withRetries } from "../platform/transaction-retry.ts";
import { readsAfter, readsForAlerts, thinObjects } from "./conclusions.ts";
import { isEventFault } from "./event-fault.ts";
import type { FetchDeps } from "./fetch-deps.ts";

/** One answer of the service. */
export interface ReadPage {
  observations: Observation[];
  /** Told of and not shown: to be read apart. */
  unread: ObjectKey[];
  date: Date;
}

/**
 * Applies one answer, with the reads that it asks for, and says why when it does not show what was wanted. Of a page with
 * an object that the database refuses the others are applied, and that one is the reason. Idempotent; opens its own
 * transactions. Throws where the database does not answer, or refuses the only object.
 */
export async function applyAnswer(
  deps: FetchDeps,
  fetch: Pick<DueFetch, "resource" | "id">,
  page: Pick<ReadPage, "observations" | "unread">,
): Promise<string | null> {
  const { observations, unread } = page;
  try {
    return await applyTogether(deps, fetch, page);
  } catch (error) {
    if (observations.length <= 1 || !isEventFault(error)) throw error;
    deps.log.warn({ err: error, objects: observations.length }, "an answer failed and is halved");
    const half = Math.ceil(observations.length / 2);
    const parts = [
      { observations: observations.slice(0, half), unread },
      { observations: observations.slice(half), unread: [] },
    ];
    const problems: (string | null)[] = [];
    for (const part of parts) problems.push(await applyPart(deps, fetch, part));
    return problems.find((problem) => problem !== null) ?? null;
  }
}

async function applyPart(
  deps: FetchDeps,
  fetch: Pick<DueFetch, "resource" | "id">,
  part: Pick<ReadPage, "observations" | "unread">,
): Promise<string | null> {
  try {
    return await applyAnswer(deps, fetch, part);
  } catch (error) {
    if (!isEventFault(error)) throw error;
    const [refused] = part.observations;
    const named = { resource: refused?.resource, id: refused?.object["id"] };
    deps.log.error({ err: error, ...named }, "an object of an answer failed");
    return reasonOf(error);
  }
}

async function applyTogether(
  deps: FetchDeps,
  { resource, id }: Pick<DueFetch, "resource" | "id">,
  { observations, unread }: Pick<ReadPage, "observations" | "unread">,
): Promise<string | null> {
  const { outcomes } = await withIsolatedAlerts(deps.log, (tell) =>
    withRetries(deps, () =>
      inTransaction(deps.db, async (trx) => {
        const applied = await applyObservations(trx, observations);
        const thin = thinObjects(observations, applied.outcomes);
        const others = thin.filter((object) => object.resource !== resource || object.id !== id);
        const { ties } = applied;
        const wanted = readsAfter({ ties, unread: [...applied.unread, ...unread, ...others] });
        const news = { states: applied.written, future: applied.unbelieved };
        const missing = await tell(trx, deps.alerts, news, "read");
        await wantFetches(trx, [...wanted, ...readsForAlerts(missing)]);
        return applied;
      }),
    ),
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
