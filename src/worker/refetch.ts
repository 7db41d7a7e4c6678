import type { Knex } from "knex";
import { withBelievedDates } from "../client/believed-dates.ts";
import { type ServiceClient, isObjectId } from "../client/service-client.ts";
import { ServiceUnavailableError } from "../client/service-errors.ts";
import { canonicalTimestamp } from "../contract/timestamp.ts";
import { asObject } from "../contract/wire-types.ts";
import {
  type DueRefetch,
  postponeRefetch,
  completeRefetch,
  takeDueRefetches,
  requestRefetches,
} from "../inbox/refetch.ts";
import type { Listener } from "../mirror/listener.ts";
import { isResource, readEndpointOf, resourceNamed } from "../mirror/resources.ts";
import { type ObjectKey, type Snapshot, snapshotFrom } from "../mirror/snapshot.ts";
import { applySnapshots, applyStates } from "../mirror/write/apply.ts";
import type { Clock } from "../platform/clock.ts";
import { type Log, safeReason } from "../platform/log.ts";
import { inTransaction, retryOnConflict } from "../platform/postgres/transactions.ts";
import type { Random } from "../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../platform/retry-delay.ts";
import { isEventFault } from "./apply-batch.ts";
import {
  disputedTransactions,
  refetchesAfter,
  refetchesForAlerts,
  partialObjects,
} from "./outcomes.ts";

/**
 * The delays after failed calls and useless answers. Failed calls never end a refetch: the object is late, not lost.
 * Useless answers do (`maxUselessAnswers`).
 */
export const refetchRetryPolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 600_000,
};

/** Dependencies of a refetch. */
export interface RefetchDeps {
  db: Knex;
  client: Pick<ServiceClient, "get" | "listPages">;
  log: Log;
  random: Random;
  /** This machine's clock. */
  clock: Clock;
  listener: Listener;
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
  await Promise.all(
    due.map((refetch) => withBackoff(deps, refetch, () => refetchOne(deps, refetch))),
  );
  return due.length;
}

async function refetchOne(deps: RefetchDeps, refetch: DueRefetch): Promise<void> {
  const result = await readObject(
    { client: withBelievedDates(deps.client, deps.clock), cause: "fetch" },
    refetch,
  );
  if (result.kind === "missing") return await applyMissing(deps, refetch, result.date);
  if (result.kind === "unreadable") return await giveUpOrRetry(deps, refetch, result.problem);
  const problem = await applyAnswer(deps, refetch, result.page);
  if (problem !== null) return await giveUpOrRetry(deps, refetch, problem);
  await completeUnlessEarly(deps, refetch, result.page.date);
}

const unknownThere = "unknown at the service";

async function applyMissing(deps: RefetchDeps, refetch: DueRefetch, date: Date): Promise<void> {
  const { db, missingGraceMs } = deps;
  const { absence } = resourceNamed(refetch.resource);
  if (absence === undefined) return giveUpOrRetry(deps, refetch, unknownThere);
  const missingSince = refetch.missingSince ?? date;
  const goneForMs = date.getTime() - missingSince.getTime();
  if (refetch.missingSince === null || goneForMs < missingGraceMs) {
    const delayMs = Math.max(1_000, missingGraceMs - goneForMs);
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
      await completeRefetch(trx, refetch);
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

/** One answer of the service. */
export interface ReadPage {
  observations: Snapshot[];
  /** Objects that the answer names but does not contain: they need a refetch of their own. */
  unread: ObjectKey[];
  date: Date;
}

/**
 * Applies one answer and requests the refetches that it requires. Returns the reason when the answer does not show the
 * requested object. When the database refuses an object of a page, the others are applied, and that refusal is the
 * reason. Idempotent; opens its own transactions. Throws when the database does not answer, or refuses the only object.
 */
export async function applyAnswer(
  deps: RefetchDeps,
  refetch: Pick<DueRefetch, "resource" | "id">,
  page: Pick<ReadPage, "observations" | "unread">,
): Promise<string | null> {
  const { observations, unread } = page;
  try {
    return await applyTogether(deps, refetch, page);
  } catch (error) {
    if (observations.length <= 1 || !isEventFault(error)) throw error;
    deps.log.warn(
      { err: error, objects: observations.length },
      "an answer could not be applied as a whole and is halved",
    );
    const half = Math.ceil(observations.length / 2);
    const parts = [
      { observations: observations.slice(0, half), unread },
      { observations: observations.slice(half), unread: [] },
    ];
    const problems: (string | null)[] = [];
    for (const part of parts) problems.push(await applyPart(deps, refetch, part));
    return problems.find((problem) => problem !== null) ?? null;
  }
}

async function applyPart(
  deps: RefetchDeps,
  refetch: Pick<DueRefetch, "resource" | "id">,
  part: Pick<ReadPage, "observations" | "unread">,
): Promise<string | null> {
  try {
    return await applyAnswer(deps, refetch, part);
  } catch (error) {
    if (!isEventFault(error)) throw error;
    const [refused] = part.observations;
    const named = { resource: refused?.resource, id: refused?.object["id"] };
    deps.log.error({ err: error, ...named }, "an object of an answer could not be applied");
    return safeReason(error);
  }
}

async function applyTogether(
  deps: RefetchDeps,
  { resource, id }: Pick<DueRefetch, "resource" | "id">,
  { observations, unread }: Pick<ReadPage, "observations" | "unread">,
): Promise<string | null> {
  const { outcomes } = await deps.listener.tellWithin(deps.log, (tell) =>
    retryOnConflict(deps, () =>
      inTransaction(deps.db, async (trx) => {
        const applied = await applySnapshots(trx, observations);
        const partial = partialObjects(observations, applied.outcomes);
        const others = partial.filter((object) => object.resource !== resource || object.id !== id);
        const { ties } = applied;
        const reads = refetchesAfter({ ties, unread: [...applied.unread, ...unread, ...others] });
        const news = { states: applied.written, future: applied.unbelieved };
        const missingFacts = await tell(trx, news, "read");
        await requestRefetches(trx, [...reads, ...refetchesForAlerts(missingFacts)]);
        return applied;
      }),
    ),
  );
  const problems = outcomes.flatMap((outcome, n) => {
    const shown = observations[n]?.resource;
    if (outcome.outcome === "unreadable") return [{ shown, problem: outcome.reason }];
    const isPartial = outcome.outcome === "partial" && shown === resource;
    return isPartial ? [{ shown, problem: "required fields are missing" }] : [];
  });
  for (const { shown, problem } of problems) {
    deps.log.warn({ resource: shown, problem }, "the service's answer cannot be read");
  }
  return problems.find(({ shown }) => shown === resource)?.problem ?? null;
}

/**
 * The service may lag behind its own events. With this many useless answers the refetch is given up; failed calls and
 * early answers do not count. What the mirror then lacks stays missing until an event or a nightly run shows it.
 */
const maxUselessAnswers = 6;

/** Does the work of one refetch. Any failure postpones it with a growing delay. Never throws. */
export async function withBackoff(
  deps: RefetchDeps,
  refetch: DueRefetch,
  work: () => Promise<void>,
): Promise<void> {
  const { db, log } = deps;
  try {
    await work();
  } catch (error) {
    const askedMs = error instanceof ServiceUnavailableError ? (error.retryAfterMs ?? 0) : 0;
    const delayMs = Math.max(askedMs, backoffMs(deps, refetch));
    const { resource, id, missingSince } = refetch;
    log.warn({ err: error, resource, id, delayMs }, "a refetch failed");
    await postponeRefetch(db, refetch, { delayMs, error: safeReason(error), missingSince }).catch(
      (lost: unknown) => {
        log.warn(
          { err: lost },
          "a refetch could not be postponed: it is due again when its lease ends",
        );
      },
    );
  }
}

/** Counts a useless answer, which a retry may improve. Retries with backoff, then gives up. */
export async function giveUpOrRetry(
  deps: RefetchDeps,
  refetch: DueRefetch,
  problem: string,
): Promise<void> {
  const { resource, id, reason } = refetch;
  const uselessAnswers = refetch.uselessAnswers + 1;
  if (uselessAnswers < maxUselessAnswers) {
    const delayMs = backoffMs(deps, refetch);
    return postponeRefetch(deps.db, refetch, { delayMs, error: problem, uselessAnswers });
  }
  // A dispute may have given its own id instead of the order's.
  deps.log[reason === "dispute" ? "info" : "error"](
    { resource, id, problem },
    "a refetch was given up",
  );
  await completeRefetch(deps.db, refetch);
}

/** The longest delay after an early answer, unless the backoff is longer by then. */
const earlyMs = 60_000;

/** Completes a refetch whose last answer had this `Date`, unless that is too early to confirm the tie it was for. */
export async function completeUnlessEarly(
  deps: RefetchDeps,
  refetch: DueRefetch,
  date: Date,
): Promise<void> {
  const { notBefore } = refetch;
  if (notBefore === null || date >= notBefore) return completeRefetch(deps.db, refetch);
  // The service's clock may be moved, so a tie may be dated years ahead: it is read again at growing intervals.
  const maxMs = Math.max(earlyMs, backoffMs(deps, refetch));
  const delayMs = Math.min(maxMs, notBefore.getTime() - date.getTime() + 100);
  await postponeRefetch(deps.db, refetch, {
    delayMs,
    error: "answered too early to confirm the tie",
  });
}

const backoffMs = ({ random }: RefetchDeps, { attempts }: DueRefetch): number =>
  retryDelayMs(refetchRetryPolicy, attempts, random) ?? refetchRetryPolicy.maxDelayMs;
