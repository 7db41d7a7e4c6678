import { postponeFetch, settleFetch } from "../inbox/fetches.ts";
import type { DueFetch } from "../inbox/fetches.ts";
import { fetchRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import { ServiceUnavailableError } from "../service/service-errors.ts";
import { reasonOf } from "../platform/loggable-error.ts";
import type { FetchDeps } from "./fetch-deps.ts";

/** The service may be a moment behind its own events; after this many useless answers the read is given up. */
const maxUseless = 6;

/** Does the work of one read; whatever fails puts the read off, longer each time. Never throws. */
export async function orPutOff(
  deps: FetchDeps,
  fetch: DueFetch,
  work: () => Promise<void>,
): Promise<void> {
  const { db, log } = deps;
  try {
    await work();
  } catch (error) {
    const askedMs = error instanceof ServiceUnavailableError ? (error.retryAfterMs ?? 0) : 0;
    const delayMs = Math.max(askedMs, backoffMs(deps, fetch));
    const { resource, id, missingSince } = fetch;
    log.warn({ err: error, resource, id, delayMs }, "a read failed");
    await postponeFetch(db, fetch, { delayMs, error: reasonOf(error), missingSince }).catch(
      (lost: unknown) => {
        log.warn({ err: lost }, "a read could not be put off: its lease will end");
      },
    );
  }
}

/** For answers that a repeat may better, but not for ever. */
export async function giveUpOrRetry(
  deps: FetchDeps,
  fetch: DueFetch,
  problem: string,
): Promise<void> {
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

const earlyMs = 60_000;

/** Ends a read whose last answer bore this `Date`, unless that is too early to settle the tie it was for. */
export async function conclude(deps: FetchDeps, fetch: DueFetch, date: Date): Promise<void> {
  const { notBefore } = fetch;
  if (notBefore === null || date >= notBefore) return settleFetch(deps.db, fetch);
  // The service's clock may be moved. A tie that it dates years ahead is asked for less and less often.
  const mostMs = Math.max(earlyMs, backoffMs(deps, fetch));
  const delayMs = Math.min(mostMs, notBefore.getTime() - date.getTime() + 100);
  await postponeFetch(deps.db, fetch, { delayMs, error: "answered before the tie can be settled" });
}

const backoffMs = ({ random }: FetchDeps, { attempts }: DueFetch): number =>
  retryDelayMs(fetchRetryPolicy, attempts, random) ?? fetchRetryPolicy.maxDelayMs;
