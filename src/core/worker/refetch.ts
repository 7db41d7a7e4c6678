import { withBelievedDates } from "../client/believed-dates.ts";
import { type ServiceClient, isObjectId } from "../client/service-client.ts";
import { ServiceUnavailableError } from "../client/service-errors.ts";
import { canonicalTimestamp } from "../contract/timestamp.ts";
import { asObject } from "../contract/wire-types.ts";
import { type DueRefetch, completeRefetches, postponeRefetch, takeDueRefetches } from "../inbox/refetch.ts";
import { isResource, readEndpointOf, resourceNamed } from "../mirror/resources.ts";
import { snapshotFrom } from "../mirror/snapshot.ts";
import { applyStates } from "../mirror/write/apply.ts";
import type { Clock } from "../../platform/clock.ts";
import { safeReason } from "../../platform/log.ts";
import { retryOnConflict } from "../../platform/postgres/transactions.ts";
import { type RetryPolicy, retryDelayMs } from "../../platform/retry-delay.ts";
import { type AnswerDeps, type AnswerGroup, type ReadPage, createAnswerGroup, isEarly } from "./apply-answers.ts";
import { isPermanent } from "./apply-batch.ts";
import { disputedTransactions } from "./outcomes.ts";

/**
 * The delays after failed calls and useless answers. Failed calls never end a refetch: the object is late, not lost.
 * Useless answers do (`maxUselessAnswers`).
 */
export const refetchRetryPolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 600_000,
};

export interface RefetchDeps extends AnswerDeps {
  client: Pick<ServiceClient, "get" | "listPages">;
  /** This machine's clock. */
  clock: Clock;
  /** The least time between two answers "unknown" that together prove a customer's deletion. */
  missingGraceMs: number;
  /**
   * Why the key may belong to another account than this mirror's; null when it does not. Checked before a missing
   * object is believed.
   */
  foreignAccount: () => Promise<string | null>;
}

const atOnce = 8;
/**
 * Longer than an attempt takes with the client's retries. If one does take longer, another worker reads the object too,
 * which is harmless.
 */
const leaseSeconds = 120;

/**
 * Reads the next few objects whose refetch is due, at the same time, and applies them. Returns how many refetches it
 * took. One call at a time per process is enough.
 */
export async function refetchDueObjects(deps: RefetchDeps): Promise<number> {
  const due = await takeDueRefetches(deps.db, {
    except: disputedTransactions.resource,
    limit: atOnce,
    leaseSeconds,
  });
  const apply = createAnswerGroup(deps);
  await Promise.all(due.map((refetch) => withBackoff(deps, refetch, () => refetchOne(deps, refetch, apply))));
  return due.length;
}

async function refetchOne(deps: RefetchDeps, refetch: DueRefetch, apply: AnswerGroup): Promise<void> {
  const result = await readObject({ client: withBelievedDates(deps.client, deps.clock), cause: "fetch" }, refetch);
  if (result.kind === "missing") return await applyMissing(deps, refetch, result.date);
  if (result.kind === "unreadable") return await giveUpOrRetry(deps, refetch, result.problem);
  const { page } = result;
  const problem = await apply(refetch, page);
  if (problem !== null) return await giveUpOrRetry(deps, refetch, problem);
  if (isEarly(refetch, page.date)) await postponeEarly(deps, refetch, page.date);
}

const unknownThere = "unknown at the service";

async function applyMissing(deps: RefetchDeps, refetch: DueRefetch, date: Date): Promise<void> {
  const { db, missingGraceMs } = deps;
  const { absence } = resourceNamed(refetch.resource);
  if (absence === undefined) return giveUpOrRetry(deps, refetch, unknownThere);
  const missingSince = refetch.missingSince ?? date;
  const goneForMs = date.getTime() - missingSince.getTime();
  if (refetch.missingSince === null || goneForMs < missingGraceMs) {
    // The service's clock may have been set back since.
    const delayMs = Math.min(missingGraceMs, Math.max(1_000, missingGraceMs - goneForMs));
    return postponeRefetch(db, refetch, { delayMs, error: unknownThere, missingSince });
  }
  // With another account's key, the service does not know any of our objects either.
  const problem = await deps.foreignAccount();
  if (problem !== null) {
    const delayMs = backoffMs(deps, refetch);
    return postponeRefetch(db, refetch, { delayMs, error: problem, missingSince });
  }
  const at = canonicalTimestamp(date.toISOString());
  if (at === null) throw new TypeError("the Date of the service is not a time");
  await retryOnConflict(deps, () =>
    db.transaction(async (trx) => {
      await applyStates(trx, [absence.state(refetch.id, at, "fetch")]);
      await completeRefetches(trx, [refetch]);
    }),
  );
}

export type ReadResult =
  | { kind: "found"; page: ReadPage }
  | { kind: "missing"; date: Date }
  /** The id cannot be used in a request, or the answer does not contain the requested object. */
  | { kind: "unreadable"; problem: string };

type Reader = { client: Pick<ServiceClient, "get">; cause: string };

/** One slow object must not delay the others for long. */
const deadlineMs = 20_000;

/**
 * Reads one object from the service. Must not be called in a transaction, since it waits for the service. Throws the
 * client's `ServiceError`.
 */
async function readObject(
  { client, cause }: Reader,
  { resource, id }: { resource: string; id: string },
): Promise<ReadResult> {
  if (!isResource(resource)) throw new TypeError(`there is no endpoint that reads a ${resource}`);
  if (!isObjectId(id)) return { kind: "unreadable", problem: "the id cannot be used in a request" };
  const { endpoint, query } = readEndpointOf(resource);
  const call = { params: { id }, query };
  const { status, body, date } = await client.get(endpoint, call, { deadlineMs });
  if (status === 404) return { kind: "missing", date };
  const object = asObject(body);
  if (object?.["id"] !== id) {
    return { kind: "unreadable", problem: "the service's answer does not contain the object" };
  }
  const observations = [snapshotFrom(resource, object, canonicalDate(date), cause)];
  return { kind: "found", page: { observations, unread: [], date } };
}

/** A `Date` of the service in the canonical form of versions. */
export const canonicalDate = (date: Date): string | null => canonicalTimestamp(date.toISOString());

/**
 * The service may lag behind its own events. The refetch is given up after this many useless answers; failed calls and
 * early answers do not count. The state stays missing from the mirror until an event or a nightly run shows it.
 */
const maxUselessAnswers = 6;

/**
 * Does the work of one refetch. Any failure postpones it with a growing delay; an answer whose values the database can
 * never store counts as useless. Never throws.
 */
export async function withBackoff(deps: RefetchDeps, refetch: DueRefetch, work: () => Promise<void>): Promise<void> {
  const { db, log } = deps;
  try {
    await work();
  } catch (error) {
    const askedMs = error instanceof ServiceUnavailableError ? (error.retryAfterMs ?? 0) : 0;
    const delayMs = Math.max(askedMs, backoffMs(deps, refetch));
    const { resource, id, missingSince } = refetch;
    log.warn({ err: error, resource, id, delayMs }, "a refetch failed");
    const reason = safeReason(error);
    const noted = isPermanent(error)
      ? giveUpOrRetry(deps, refetch, reason)
      : postponeRefetch(db, refetch, { delayMs, error: reason, missingSince });
    await noted.catch((lost: unknown) => {
      log.warn({ err: lost }, "a refetch could not be postponed: it is due again when its lease ends");
    });
  }
}

/** Counts a useless answer, which a retry may improve. Retries with backoff, then gives up. */
export async function giveUpOrRetry(deps: RefetchDeps, refetch: DueRefetch, problem: string): Promise<void> {
  const { resource, id, reason } = refetch;
  const uselessAnswers = refetch.uselessAnswers + 1;
  if (uselessAnswers < maxUselessAnswers) {
    const delayMs = backoffMs(deps, refetch);
    return postponeRefetch(deps.db, refetch, { delayMs, error: problem, uselessAnswers });
  }
  // A dispute may have given its own id instead of the order's.
  deps.log[reason === "dispute" ? "info" : "error"]({ resource, id, problem }, "a refetch was given up");
  await completeRefetches(deps.db, [refetch]);
}

/** The longest delay after an early answer, unless the backoff is longer by then. */
const earlyMs = 60_000;

/** Completes a refetch whose last answer had this `Date`, unless that is too early to confirm the tie it was for. */
export async function completeUnlessEarly(deps: RefetchDeps, refetch: DueRefetch, date: Date): Promise<void> {
  if (isEarly(refetch, date)) await postponeEarly(deps, refetch, date);
  else await completeRefetches(deps.db, [refetch]);
}

async function postponeEarly(deps: RefetchDeps, refetch: DueRefetch, date: Date): Promise<void> {
  const missingMs = (refetch.notBefore ?? date).getTime() - date.getTime();
  // The service's clock may be moved, so a tie may be dated years ahead: it is read again at growing intervals.
  const maxMs = Math.max(earlyMs, backoffMs(deps, refetch));
  await postponeRefetch(deps.db, refetch, {
    delayMs: Math.min(maxMs, missingMs + 100),
    error: "answered too early to confirm the tie",
  });
}

const backoffMs = ({ random }: RefetchDeps, { attempts }: DueRefetch): number =>
  retryDelayMs(refetchRetryPolicy, attempts, random) ?? refetchRetryPolicy.maxDelayMs;
