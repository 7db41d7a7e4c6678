import type { Knex } from "knex";
import { type EnvelopePaths, parseEventBody } from "../contract/event-envelope.ts";
import { canonicalTimestamp } from "../contract/timestamp.ts";
import {
  type Claim,
  type ClaimedEvent,
  type CompletedEvent,
  claimEvents,
  claimNext,
  completeEvents,
  postponeEvent,
} from "../inbox/claim.ts";
import { deferLocked } from "../inbox/locked-events.ts";
import { type RefetchRequest, requestRefetches } from "../inbox/refetch.ts";
import { rewriteBatch } from "../inbox/retention.ts";
import type { Listener, MaskedObject, Tell } from "../mirror/listener.ts";
import { type Masked, maskBody } from "../mirror/privacy/mask.ts";
import { parsedEventOf, redactErasedEvents } from "../mirror/privacy/redact-events.ts";
import type { GroupState, ObjectKey } from "../mirror/snapshot.ts";
import { clockToleranceMs } from "../mirror/version.ts";
import { type WriterLimits, applySnapshots, defaultWriterLimits, withoutWaiting } from "../mirror/write/apply.ts";
import type { Clock } from "../../platform/clock.ts";
import { type Log, safeReason } from "../../platform/log.ts";
import { refusesValues } from "../../platform/postgres/errors.ts";
import { inTransaction, isRetryableConflict, retryOnConflict } from "../../platform/postgres/transactions.ts";
import type { Random } from "../../platform/random.ts";
import { isTracing } from "../../platform/tracing/tracing.ts";
import { type RetryPolicy, retryDelayMs } from "../../platform/retry-delay.ts";
import { traceBatch, tracePostponed } from "./batch-trace.ts";
import { findLockedEvents } from "./locked-events.ts";
import { type Interpretation, interpretEvent, objectNamedBy } from "./interpret-event.ts";
import { refetchesForAlerts, completedEventsOf, requiredRefetches } from "./outcomes.ts";

/** Up to 1 s, 2 s, 4 s … 1 h: the last of 16 attempts comes two to four hours after the first. */
export const eventRetryPolicy: RetryPolicy = {
  maxAttempts: 16,
  baseDelayMs: 1_000,
  maxDelayMs: 3_600_000,
};

export interface ApplyDeps {
  db: Knex;
  log: Log;
  random: Random;
  places: Readonly<EnvelopePaths>;
  /** This machine's clock. */
  clock: Clock;
  serviceClock: Clock;
  listener: Listener;
  /** Called after the commit with the time that newly applied events waited for it. */
  onApplied?: (lagsMs: readonly number[]) => void;
  /** Called after the commit with what became of the events. */
  onEvents?: (events: readonly CompletedEvent[]) => void;
  /** The service is a sandbox, whose clock anyone may move. An event's own time is then believed. */
  isClockMovable?: boolean;
  /** Limits of one transaction; `defaultWriterLimits` unless set. */
  writerLimits?: WriterLimits;
}

/** Bytes of bodies, decoded, take some ten times as much memory. */
const batchLimits = { rows: 500, bytes: 8 * 1024 * 1024 };
/**
 * Limits of a transaction that runs next to another. A batch of `atLeast` events costs little more an event than a full
 * one. `lateAfterMs` is far longer than a batch takes, also on a busy machine: if it were not, all workers would apply
 * small batches as soon as the machine is busy, which makes it busier.
 */
const besideAnother = { atLeast: 250, lateAfterMs: 2_000 };

/**
 * Applies those of the events that are still unapplied: mirror, history, alerts, refetches and inbox states in one
 * transaction. A batch that fails is halved until the event at fault is alone. That event waits for its next attempt;
 * the others are not affected. After a lock time-out, locked events are deferred (`applyUnlocked`), and no attempt is
 * counted. Idempotent. Throws errors that no event caused (`isEventFault`), such as a database that does not answer.
 */
export async function applyBatch(deps: ApplyDeps, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return;
  let left: readonly number[];
  try {
    left = await applyClaimed(deps, async (trx, apply) => {
      const claim = await claimEvents(trx, seqs, batchLimits);
      await apply(claim);
      return claim.left;
    });
  } catch (error) {
    return await applyOthers(deps, seqs, error);
  }
  await applyBatch(deps, left);
}

/** The result of one poll of the inbox. */
export interface Look {
  /** Events applied or postponed. */
  events: number;
  /** The highest number among them; 0 without any. */
  last: number;
  /** More are waiting than one batch takes. */
  isFull: boolean;
  /** No other transaction is applying events, so the caller must take the events that were left. */
  leads: boolean;
}

/**
 * Applies the oldest events with a number above `after` that were not tried yet, up to one batch, as `applyBatch` does.
 * While another transaction applies events, it takes only many, or events that wait too long (`besideAnother`).
 */
export async function applyNext(deps: ApplyDeps, after: number): Promise<Look> {
  let seqs: number[] = [];
  let look: Look = { events: 0, last: 0, isFull: false, leads: false };
  try {
    await applyClaimed(deps, async (trx, apply) => {
      const claim = await claimNext(trx, after, { ...batchLimits, ...besideAnother });
      const { leads, events, left } = claim;
      seqs = events.map(({ seq }) => seq);
      const isFull = left.length > 0 || events.length === batchLimits.rows;
      look = { events: events.length, last: seqs.at(-1) ?? 0, isFull, leads };
      await apply(claim);
    });
  } catch (error) {
    await applyOthers(deps, seqs, error);
  }
  return look;
}

/** Runs a transaction that claims events and applies them; a concurrent one may make it start again. */
function applyClaimed<T>(
  deps: ApplyDeps,
  work: (trx: Knex.Transaction, apply: (claim: Claim) => Promise<void>) => Promise<T>,
): Promise<T> {
  const trace = isTracing() ? traceBatch(deps) : null;
  let arrivals: readonly Date[] = [];
  let settled: readonly CompletedEvent[] = [];
  const committed = deps.listener.tellWithin(deps.log, (tell) =>
    retryOnConflict(deps, () =>
      inTransaction(deps.db, (trx) =>
        work(trx, async ({ events }) => {
          const apply = async (): Promise<readonly CompletedEvent[]> => {
            const { completed } = await applyInTransaction(deps, tell, trx, events);
            settled = completed;
            arrivals = events.flatMap(({ isReplay, receivedAt }) => (isReplay ? [] : receivedAt));
            for (const { seq, state, reason } of completed) {
              if (state === "dead") deps.log.error({ seq, reason }, "an event is dead");
            }
            return completed;
          };
          await (trace === null ? apply() : trace.within(events, apply));
        }),
      ),
    ),
  );
  const told = committed.then((result) => {
    const nowMs = deps.clock.now().getTime();
    // Two clocks: one that is behind the database's must not make a wait negative.
    deps.onApplied?.(arrivals.map((at) => Math.max(0, nowMs - at.getTime())));
    if (settled.length > 0) deps.onEvents?.(settled);
    return result;
  });
  return trace === null ? told : trace.until(told);
}

/** How long an event waits when another transaction keeps its object locked. */
const lockedDelayMs = 5_000;

/** After a batch failed: applies all of it but the event at fault. Throws the error when no event caused it. */
async function applyOthers(deps: ApplyDeps, seqs: readonly number[], error: unknown): Promise<void> {
  const [only] = seqs;
  if (only === undefined) throw error;
  if (isRetryableConflict(error)) return await applyUnlocked(deps, seqs, error);
  if (!isEventFault(error)) throw error;
  if (seqs.length > 1) {
    deps.log.warn({ err: error, events: seqs.length }, "a batch failed and is halved");
    return await applyHalves(deps, seqs);
  }
  const postponed = (): Promise<void> => postpone(deps, only, error);
  await (isTracing() ? tracePostponed(only, postponed) : postponed());
}

/**
 * After a batch waited for a lock in vain: defers the events whose rows are locked, all in one statement, and applies
 * the others without waiting. Where none can be found, the batch is halved: a row that is being inserted is visible to
 * no other transaction.
 */
async function applyUnlocked(deps: ApplyDeps, seqs: readonly number[], error: unknown): Promise<void> {
  const { db, log, writerLimits = defaultWriterLimits } = deps;
  const unwaiting = withoutWaiting(writerLimits);
  const isFirstTry = unwaiting.lockMs < writerLimits.lockMs;
  const found = isFirstTry || seqs.length === 1 ? await findLockedEvents(deps, seqs) : [];
  const [only] = seqs;
  const locked = found.length === 0 && seqs.length === 1 && only !== undefined ? [{ seq: only, holder: null }] : found;
  if (locked.length === 0) {
    log.warn({ err: error, events: seqs.length }, "a batch waited for a lock and is halved");
    return await applyHalves({ ...deps, writerLimits: unwaiting }, seqs);
  }
  log.warn({ err: error, events: locked.length, holder: locked[0]?.holder }, "events wait for locks");
  await deferLocked(db, locked, { delayMs: lockedDelayMs });
  const waiting = new Set(locked.map(({ seq }) => seq));
  const others = seqs.filter((seq) => !waiting.has(seq));
  await applyBatch({ ...deps, writerLimits: unwaiting }, others);
}

/**
 * Applies both halves, even when the first throws: an event that cannot even be postponed must not block those behind
 * it.
 */
async function applyHalves(deps: ApplyDeps, seqs: readonly number[]): Promise<void> {
  const half = Math.ceil(seqs.length / 2);
  try {
    await applyBatch(deps, seqs.slice(0, half));
  } finally {
    await applyBatch(deps, seqs.slice(half));
  }
}

async function postpone({ db, log, random, places, listener }: ApplyDeps, seq: number, error: unknown): Promise<void> {
  const known = await db("inbox.progress").where({ seq }).first<{ attempts: number }>("attempts");
  const attempt = (known?.attempts ?? 0) + 1;
  const delayMs = isPermanent(error) ? null : retryDelayMs(eventRetryPolicy, attempt, random);
  const reason = `attempt ${attempt}: ${safeReason(error)}`;
  await listener.tellWithin(log, (tell) =>
    inTransaction(db, async (trx) => {
      const stored = await redactStoredBody(trx, places, seq);
      const object = namedObject(places, { seq, body: stored.body });
      const named = { resourceType: object?.resource ?? null, resourceId: object?.id ?? null };
      const masked = maskedObjects([{ seq, ...named }], stored.masked, places);
      const isPostponed = await postponeEvent(trx, { seq, attempt, reason, delayMs, ...named });
      if (isPostponed) {
        log.error({ err: error, seq, attempt, delayMs }, delayMs === null ? "an event is dead" : "an event failed");
      }
      const dead = isPostponed && delayMs === null ? [{ seq, reason }] : [];
      await tell(trx, { masked, dead }, "event");
    }),
  );
}

/** The object of a failed event, so that a search for the object finds it. Null also when the event cannot be read. */
function namedObject(places: Readonly<EnvelopePaths>, event: { seq: number; body: unknown }): ObjectKey | null {
  try {
    return objectNamedBy(interpretEvent(places, event));
  } catch {
    // What made the event fail must not keep it from being postponed.
    return null;
  }
}

/**
 * How far the service's clock was moved ahead, which a sandbox allows. A difference within the tolerance counts as 0.
 */
function serviceAheadMs({ clock, serviceClock }: Pick<ApplyDeps, "clock" | "serviceClock">): number {
  const aheadMs = serviceClock.now().getTime() - clock.now().getTime();
  return aheadMs > clockToleranceMs ? aheadMs : 0;
}

/** Takes an event's own creation time as its arrival time when that is later, so that it is always believed. */
function believeOwnTime(interpretation: Interpretation): Interpretation {
  if (interpretation.kind !== "state") return interpretation;
  const { observation } = interpretation;
  const madeAt = observation.fallbackUpdatedAt;
  if (madeAt === null || madeAt <= (observation.receivedAt ?? "")) return interpretation;
  return { ...interpretation, observation: { ...observation, receivedAt: madeAt } };
}

export interface AppliedEvents {
  completed: readonly CompletedEvent[];
  /** The states that changed the history or a row. */
  written: readonly GroupState[];
  refetches: readonly RefetchRequest[];
}

/** Applies claimed events, and writes all that comes of them. Belongs in the transaction that claimed them. */
export async function applyInTransaction(
  {
    places,
    writerLimits = defaultWriterLimits,
    isClockMovable,
    ...clocks
  }: Omit<ApplyDeps, "db" | "log" | "random" | "listener">,
  tell: Tell,
  trx: Knex.Transaction,
  events: readonly ClaimedEvent[],
): Promise<AppliedEvents> {
  if (events.length === 0) return { completed: [], written: [], refetches: [] };
  const { bodies, masked } = await readRedacted(trx, places, events);
  const aheadMs = serviceAheadMs(clocks);
  const interpretations = bodies.map((body, n) => {
    const received = events[n]?.receivedAt.getTime() ?? 0;
    const receivedAt = canonicalTimestamp(new Date(received + aheadMs).toISOString());
    const interpretation = interpretEvent(places, { ...body, receivedAt });
    return isClockMovable === true ? believeOwnTime(interpretation) : interpretation;
  });
  const applied = await applySnapshots(
    trx,
    interpretations.flatMap((interpretation) => (interpretation.kind === "state" ? [interpretation.observation] : [])),
    writerLimits,
  );
  const completed = completedEventsOf(events, interpretations, applied);
  const dead = completed.filter(({ state }) => state === "dead");
  const news = {
    states: applied.written,
    masked: maskedObjects(completed, masked, places),
    future: applied.unbelieved,
    dead: dead.map(({ seq, reason }) => ({ seq, reason })),
  };
  const missingFacts = await tell(trx, news, "event");
  const refetches = [...requiredRefetches(interpretations, applied), ...refetchesForAlerts(missingFacts)];
  await requestRefetches(trx, refetches);
  await completeEvents(trx, completed);
  return { completed, written: applied.written, refetches };
}

/** Masked bodies by sequence number, with the paths where card numbers were found. */
export type MaskedBodies = ReadonlyMap<number, Masked<Buffer>>;

/**
 * Parses the bodies of events, redacts the personal data of erased people and masks card numbers. Stores the changed
 * bodies, so that the parsed and the stored bodies are the same. Needs the transaction that completes or postpones the
 * events.
 */
async function readRedacted(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePaths>,
  events: readonly { seq: number; raw: Buffer }[],
): Promise<{ bodies: { seq: number; body: unknown }[]; masked: MaskedBodies }> {
  const arrived = events.map(({ seq, raw }) => ({ seq, ...parsedEventOf(raw) }));
  const redactions = await redactErasedEvents(trx, places, arrived);
  await storeRedacted(trx, new Map([...redactions].map(([{ seq }, { raw }]) => [String(seq), raw] as const)));
  const parsed = arrived.map((event) => {
    const redacted = redactions.get(event);
    return redacted === undefined
      ? event
      : { seq: event.seq, raw: redacted.raw ?? Buffer.alloc(0), body: redacted.body };
  });
  const found = parsed.filter((event) => maskBody(event) !== null);
  const masked = await maskStoredBodies(
    trx,
    found.map(({ seq }) => seq),
  );
  const bodies = parsed.map(({ seq, body }) => {
    const rewritten = masked.get(seq);
    return { seq, body: rewritten === undefined ? body : parseEventBody(rewritten.value) };
  });
  return { bodies, masked };
}

/**
 * Redacts and masks the stored body of an event that failed (`readRedacted`), so that no stored body keeps the personal
 * data of erased people, or card numbers, beyond its first attempt. Returns it parsed; absent where it is not kept.
 * Needs the transaction that postpones the event. Idempotent.
 */
async function redactStoredBody(
  trx: Knex.Transaction,
  places: Readonly<EnvelopePaths>,
  seq: number,
): Promise<{ body?: unknown; masked: MaskedBodies }> {
  const stored = await trx("inbox.receipts").where({ seq }).first<{ raw: Buffer | null } | undefined>("raw");
  if (stored === undefined || stored.raw === null) return { masked: new Map() };
  const { bodies, masked } = await readRedacted(trx, places, [{ seq, raw: stored.raw }]);
  return { body: bodies[0]?.body, masked };
}

/**
 * The fields of each object that held card numbers. For an event without an object, they are listed under the event.
 */
function maskedObjects(
  completed: readonly Pick<CompletedEvent, "seq" | "resourceType" | "resourceId">[],
  masked: MaskedBodies,
  places: Readonly<EnvelopePaths>,
): MaskedObject[] {
  const ofObject = `${places.object}.`;
  return completed.flatMap(({ seq, resourceType, resourceId }) => {
    const paths = masked
      .get(seq)
      ?.paths.map((path) => (path.startsWith(ofObject) ? path.slice(ofObject.length) : path));
    if (paths === undefined) return [];
    return resourceType === null || resourceId === null
      ? [{ resource: "event", id: String(seq), paths }]
      : [{ resource: resourceType, id: resourceId, paths }];
  });
}

async function storeRedacted(trx: Knex.Transaction, bodies: ReadonlyMap<string, Buffer | null>): Promise<void> {
  if (bodies.size === 0) return;
  await rewriteBatch(trx, [...bodies.keys()], (raw, seq) => {
    const body = bodies.get(seq);
    return body === undefined ? raw : body;
  });
}

/** Masks card numbers in the stored bodies of these events. */
async function maskStoredBodies(trx: Knex.Transaction, seqs: readonly number[]): Promise<MaskedBodies> {
  const masked = new Map<number, Masked<Buffer>>();
  if (seqs.length === 0) return masked;
  // Reads the bodies again under a lock: an erasure may have rewritten them since.
  await rewriteBatch(trx, seqs.map(String), (raw, seq) => {
    const body = maskBody({ raw, body: parseEventBody(raw) });
    if (body !== null) masked.set(Number(seq), body);
    return body?.value ?? raw;
  });
  return masked;
}

/**
 * Whether the server would refuse the same values again: data exceptions (22) and limits of the program (54). A replay
 * tries such an event once more, after the cause was fixed.
 */
export const isPermanent = (error: unknown): boolean => isEventFault(error) && refusesValues(error);

/** Errors of our own code, which an unforeseen event may have caused. */
const ownErrors = [TypeError, RangeError, ReferenceError, SyntaxError];

/**
 * SQLSTATEs that do not blame an event: connection and pooler (08), transaction state, a server that became read-only
 * (25006), a prepared statement or cursor that is missing or is another client's (26, 34, 42P03, 42P05), authorization
 * and privileges, catalog, rollback, resources, operator, system, damaged files (XX001, XX002), lock time-out, and a plan
 * that a migration invalidated. A statement or transaction time-out (57014, 25P04) is not among them: the event itself
 * may take that long. All others may be: a merchant's trigger may raise any, and an event that is blamed wrongly waits,
 * but one that wrongly is not holds up its neighbours.
 */
const notTheEvent = /^(08|25(?!P04)|26|28|34|3D|40|42501|42P03|42P05|53|58|57P|55P03|0A000|XX001|XX002)/;

/** The connection is gone, whatever its code: poolers use codes of their own, such as XX000. */
const transactionTimeout = "25P04";
const endsConnection: readonly unknown[] = ["FATAL", "PANIC"];

/**
 * Whether the event itself may have made its transaction fail. Only such failures count as attempts. When the database
 * does not answer or another fault affects every event, none is counted.
 */
export function isEventFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  // An error with a severity comes from the server or a pooler. A lost connection is an Error of the driver, with or
  // without a code.
  if (severity !== undefined) {
    if (endsConnection.includes(severity) && code !== transactionTimeout) return false;
    return !notTheEvent.test(String(code));
  }
  return ownErrors.some((own) => error instanceof own);
}
