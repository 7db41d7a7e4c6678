import type { Knex } from "knex";
import type { AlertDesk } from "../alerts/desk.ts";
import { withIsolatedAlerts } from "../alerts/isolated-alerts.ts";
import type { TellAlerts } from "../alerts/isolated-alerts.ts";
import { claimEvents } from "../inbox/claim.ts";
import { wantFetches } from "../inbox/fetches.ts";
import { postponeEvent, settleEvents } from "../inbox/settle.ts";
import { applyObservations } from "../mirror/apply.ts";
import { clockToleranceMs } from "../mirror/version.ts";
import type { WriterLimits } from "../mirror/writer-limits.ts";
import type { Log } from "../platform/log.ts";
import { reasonOf } from "../platform/loggable-error.ts";
import type { Random } from "../platform/random.ts";
import { eventRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { isEventFault } from "./event-fault.ts";
import { interpretEvent } from "./interpret-event.ts";
import type { Interpretation } from "./interpret-event.ts";
import { readsForAlerts, settlementsOf, wantedReads } from "./conclusions.ts";
import { keepStoredBody, maskedObjects, readKept } from "./mask-bodies.ts";
import { inTransaction } from "../platform/transaction.ts";
import { withRetries } from "../platform/transaction-retry.ts";

export interface ApplyDeps {
  db: Knex;
  log: Log;
  random: Random;
  places: Readonly<EnvelopePlaces>;
  alerts: AlertDesk;
  /** The service is a sandbox, whose clock anybody may move: what an event says of its own time is believed. */
  isClockMovable?: boolean;
  /** Of a transaction; the mirror's own unless told. */
  writerLimits?: WriterLimits;
}

/** Of bodies, which take some ten times as much while they are decoded. */
const maxBytesPerTransaction = 8 * 1024 * 1024;

/**
 * Applies those of the events that are still unapplied: mirror, history, alerts, wanted reads and inbox states in one
 * transaction. A batch that fails is halved until the poisonous event stands alone: it waits for its next attempt,
 * and its neighbours do not notice. Idempotent. Throws only when the database does not answer.
 */
export async function applyBatch(deps: ApplyDeps, seqs: readonly number[]): Promise<void> {
  const [only] = seqs;
  if (only === undefined) return;
  let left: readonly number[];
  try {
    left = await withIsolatedAlerts(deps.log, (tell) =>
      withRetries(deps, () =>
        inTransaction(deps.db, (trx) => applyInTransaction(deps, tell, trx, seqs)),
      ),
    );
  } catch (error) {
    if (!isEventFault(error)) throw error;
    if (seqs.length === 1) return await postpone(deps, only, error);
    deps.log.warn({ err: error, events: seqs.length }, "a batch failed and is halved");
    return await applyHalves(deps, seqs);
  }
  await applyBatch(deps, left);
}

/** Both, also where the first throws: an event that cannot even be put off must not hold up those behind it. */
async function applyHalves(deps: ApplyDeps, seqs: readonly number[]): Promise<void> {
  const half = Math.ceil(seqs.length / 2);
  try {
    await applyBatch(deps, seqs.slice(0, half));
  } finally {
    await applyBatch(deps, seqs.slice(half));
  }
}

async function postpone(
  { db, log, random, places, alerts }: ApplyDeps,
  seq: number,
  error: unknown,
): Promise<void> {
  const known = await db("inbox.progress").where({ seq }).first<{ attempts: number }>("attempts");
  const attempt = (known?.attempts ?? 0) + 1;
  const delayMs = retryDelayMs(eventRetryPolicy, attempt, random);
  const reason = `attempt ${attempt}: ${reasonOf(error)}`;
  await withIsolatedAlerts(log, (tell) =>
    inTransaction(db, async (trx) => {
      const bodies = await keepStoredBody(trx, places, seq);
      const unknown = { seq, resourceType: null, resourceId: null };
      const masked = maskedObjects([unknown], bodies, places);
      const isPostponed = await postponeEvent(trx, { seq, attempt, reason, delayMs });
      if (isPostponed) {
        log.error(
          { err: error, seq, attempt, delayMs },
          delayMs === null ? "an event is dead" : "an event failed",
        );
      }
      const dead = isPostponed && delayMs === null ? [{ seq, reason }] : [];
      await tell(trx, alerts, { masked, dead }, "event");
    }),
  );
}

/** By how much the service's clock was moved, as a sandbox's can be; clocks that only differ are taken for equal. */
function serviceAheadMs({ clock, serviceClock }: AlertDesk): number {
  const aheadMs = serviceClock.now().getTime() - clock.now().getTime();
  return aheadMs > clockToleranceMs ? aheadMs : 0;
}

/** An event came when it says it was made, where that is later than this machine's clock said. */
function receivedWhenMade(meaning: Interpretation): Interpretation {
  if (meaning.kind !== "state") return meaning;
  const { observation } = meaning;
  const madeAt = observation.fallbackUpdatedAt;
  if (madeAt === null || madeAt <= (observation.receivedAt ?? "")) return meaning;
  return { ...meaning, observation: { ...observation, receivedAt: madeAt } };
}

/** Gives back what was too much for one transaction. */
async function applyInTransaction(
  { log, places, writerLimits, alerts, isClockMovable }: ApplyDeps,
  tell: TellAlerts,
  trx: Knex.Transaction,
  seqs: readonly number[],
): Promise<number[]> {
  const { events, left } = await claimEvents(trx, seqs, maxBytesPerTransaction);
  if (events.length === 0) return left;
  for (const { seq, eventId, repeatsId } of events) {
    if (repeatsId) log.warn({ seq, eventId }, "an event bears the id of another with other bytes");
  }
  const { bodies, masked } = await readKept(trx, places, events);
  const aheadMs = serviceAheadMs(alerts);
  const meanings = bodies.map((body, n) => {
    const received = events[n]?.receivedAt.getTime() ?? 0;
    const receivedAt = canonicalTimestamp(new Date(received + aheadMs).toISOString());
    const meaning = interpretEvent(places, { ...body, receivedAt });
    return isClockMovable === true ? receivedWhenMade(meaning) : meaning;
  });
  const applied = await applyObservations(
    trx,
    meanings.flatMap((meaning) => (meaning.kind === "state" ? [meaning.observation] : [])),
    writerLimits,
  );
  const settlements = settlementsOf(events, meanings, applied);
  const dead = settlements.filter(({ state }) => state === "dead");
  for (const { seq, reason } of dead) log.error({ seq, reason }, "an event is dead");
  const news = {
    states: applied.written,
    masked: maskedObjects(settlements, masked, places),
    future: applied.unbelieved,
    dead: dead.map(({ seq, reason }) => ({ seq, reason })),
  };
  const missing = await tell(trx, alerts, news, "event");
  await wantFetches(trx, [...wantedReads(meanings, applied), ...readsForAlerts(missing)]);
  await settleEvents(trx, settlements);
  return left;
}
