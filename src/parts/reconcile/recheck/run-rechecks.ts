import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceAnswer } from "../../../core/client/call.ts";
import { isObjectId } from "../../../core/client/service-client.ts";
import { isObject } from "../../../core/contract/wire-types.ts";
import { ServiceAnswerError, ServiceRefusedError } from "../../../core/client/service-errors.ts";
import type { Tell } from "../../../core/mirror/listener.ts";
import { readEndpointOf, resourceNamed } from "../../../core/mirror/resources.ts";
import { readTime } from "../../../core/mirror/resources/resource.ts";
import { keepUnbelieved } from "../../../core/mirror/write/apply.ts";
import type { Clock } from "../../../platform/clock.ts";
import { inTransaction, retryOnConflict } from "../../../platform/postgres/transactions.ts";
import { type ApplyContext, compareAnswer, applyDifferences } from "../compare/apply-differences.ts";
import { type DecodedAnswer, decodeAnswer } from "../compare/decode-answer.ts";
import { recordUnreadable } from "../findings/drift-findings.ts";
import type { Patience } from "../patience.ts";
import type { WalkDeps } from "../walk/walk-slice.ts";
import { type Recheck, type RecheckUpdate, dueRechecks, updateRecheck, waitingRechecks } from "./rechecks.ts";
import { type TombstoneLimits, absenceLimit, countAbsent } from "./tombstones.ts";

export interface RecheckDeps extends WalkDeps {
  /** The service's "now". */
  serviceClock: Clock;
}

export interface RecheckContext extends ApplyContext {
  cause: string;
  limits: TombstoneLimits;
  /** An object that the service does not know must be unknown for so long. */
  missingGraceMs: number;
  signal: AbortSignal;
  patience: Patience;
  /** Reports the number of objects left to read, and the wait until the next read, which may be minutes. */
  onRechecks(left: number, waitMs: number): void;
}

const parallelReads = 4;
const perRound = 100;
const pollMs = 1_000;
/** An object that keeps changing is never older than the grace: after this many reads its difference counts. */
const maxReads = 2;

/**
 * Rereads every queued object by its id once the grace is over, and concludes its recheck: it is equal, overtaken,
 * healed, or a finding stays open. An object that the service does not know twice, a grace apart, is absent. Stops if
 * too many would be absent. Throws the client's errors and the signal's reason.
 */
export async function runRechecks(deps: RecheckDeps, context: RecheckContext): Promise<void> {
  const { db, serviceClock } = deps;
  // By no clock: the service's may stand still, and this machine's may be set back. Twice the grace is enough for two
  // reads.
  const giveUpWaitingAtMs = performance.now() + 2 * context.missingGraceMs + pollMs;
  const limit = await absenceLimit(db, context.run, context.limits);
  for (;;) {
    context.signal.throwIfAborted();
    const { waiting, nextDueAt, lastDueAt } = await waitingRechecks(db, context.run);
    if (waiting === 0 || nextDueAt === null || lastDueAt === null) {
      context.onRechecks(0, 0);
      return;
    }
    if ((await countAbsent(db, context.run)) > limit) return;
    const isImpatient = performance.now() > giveUpWaitingAtMs;
    const now = isImpatient ? nextDueAt : serviceClock.now();
    const isEarly = nextDueAt > now;
    context.onRechecks(waiting, isEarly ? lastDueAt.getTime() - now.getTime() : 0);
    if (isEarly) {
      const waitMs = Math.min(pollMs, nextDueAt.getTime() - now.getTime());
      await sleep(waitMs, undefined, { signal: context.signal });
      continue;
    }
    const due = await dueRechecks(db, context.run, { dueBefore: now, limit: perRound });
    for (let at = 0; at < due.length; at += parallelReads) {
      await Promise.all(
        due.slice(at, at + parallelReads).map((recheck) => confirmOne(deps, context, recheck, isImpatient)),
      );
    }
  }
}

async function confirmOne(
  deps: RecheckDeps,
  context: RecheckContext,
  recheck: Recheck,
  isImpatient: boolean,
): Promise<void> {
  const answer = await readAgain(deps, context, recheck);
  if ("refusal" in answer) return concludeRefused(deps, context, recheck, answer.refusal);
  const { status, body, date } = answer;
  if (status === 404) return concludeMissing(deps, context, recheck, { date, isImpatient });
  const { resource } = recheck;
  const { cause } = context;
  const items = isObject(body) && body["id"] === recheck.id ? [body] : [];
  const [object] = items;
  const createdAt = object === undefined ? null : readTime(object, "created_at");
  const look = decodeAnswer({ resource, date, cause, expectsOrder: false }, items);
  await deps.listener.tellWithin(deps.log, (tell) =>
    retryOnConflict(
      deps,
      () =>
        inTransaction(deps.db, async (trx) => {
          const update = await concludeFound(trx, context, tell, { recheck, look, createdAt });
          await updateRecheck(trx, context.run, recheck, update);
        }),
      { waitsForLocks: true },
    ),
  );
}

/**
 * The refusal of one object does not stop the others. A missing permission or an outage stops the run, and so does a
 * long wait that the service asks for.
 */
async function readAgain(
  { client }: RecheckDeps,
  { signal, patience }: RecheckContext,
  { resource, id }: Recheck,
): Promise<ServiceAnswer | { refusal: string }> {
  const { endpoint, query } = readEndpointOf(resource);
  if (!isObjectId(id)) return { refusal: "no URL can be made of its id" };
  try {
    return await patience.ask(() => client.get(endpoint, { params: { id }, query }, { priority: "walk", signal }));
  } catch (error) {
    const isItsOwn =
      error instanceof ServiceAnswerError ||
      (error instanceof ServiceRefusedError && error.status !== 401 && error.status !== 403);
    if (!isItsOwn) throw error;
    return { refusal: error.message };
  }
}

async function concludeRefused(
  { db, serviceClock }: RecheckDeps,
  { run }: RecheckContext,
  recheck: Recheck,
  reason: string,
): Promise<void> {
  await inTransaction(db, async (trx) => {
    await recordUnreadable(trx, { run, seenAt: serviceClock.now() }, [{ ...recheck, reason }]);
    await updateRecheck(trx, run, recheck, { state: "settled", outcome: "unreadable" });
  });
}

async function concludeFound(
  trx: Parameters<typeof applyDifferences>[0],
  context: RecheckContext,
  tell: Tell,
  { recheck, look, createdAt }: { recheck: Recheck; look: DecodedAnswer; createdAt: string | null },
): Promise<RecheckUpdate> {
  const { run, graceMs } = context;
  const seenAt = new Date(look.observedAt);
  await keepUnbelieved(trx, look.unbelieved);
  await tell(trx, { future: look.unbelieved }, "reconciliation");
  if (look.objects.length === 0 || look.unbelieved.length > 0) {
    const [shown] = look.unreadable;
    const reason = shown?.reason ?? "the answer does not show the object in full";
    await recordUnreadable(trx, { run, seenAt }, [{ ...recheck, reason, createdAt }]);
    return { state: "settled", outcome: "unreadable", createdAt };
  }
  const isRecheck = recheck.why === "mismatch" || recheck.reads + 1 >= maxReads;
  const sorted = await compareAnswer(trx, look, { graceMs }, { isRecheck });
  if (sorted === null) return { state: "settled", outcome: outcomeWhenEqual(recheck, look) };
  const isUncertain = sorted.recheck.length > 0;
  const how = { isRecheck: true, tell };
  const tally = await applyDifferences(trx, context, look, { ...sorted, recheck: [] }, how);
  if (isUncertain) {
    return {
      state: "waiting",
      outcome: "still young",
      dueAt: new Date(seenAt.getTime() + graceMs),
    };
  }
  const [outcome = "overtaken"] = Object.keys(tally);
  return { state: "settled", outcome };
}

/** A list that should have shown an object omitted it. Only a soft deletion, which a list may hide, explains that. */
function outcomeWhenEqual({ why, resource }: Recheck, { states }: DecodedAnswer): string {
  const isDeleted = resourceNamed(resource).absence !== undefined && states.some(({ columns }) => columns["deleted"]);
  return why === "not_listed" && !isDeleted ? "lost_in_list" : "equal";
}

async function concludeMissing(
  { db }: RecheckDeps,
  { run, missingGraceMs }: RecheckContext,
  recheck: Recheck,
  { date, isImpatient }: { date: Date; isImpatient: boolean },
): Promise<void> {
  const since = recheck.missingSince ?? date;
  const isGraceOver = isImpatient || date.getTime() - since.getTime() >= missingGraceMs;
  const isSecond = recheck.missingSince !== null && isGraceOver;
  const update: RecheckUpdate = {
    state: isSecond ? "absent" : "waiting",
    outcome: "unknown at the service",
    missingSince: since,
    dueAt: isSecond ? date : new Date(since.getTime() + missingGraceMs),
  };
  await inTransaction(db, (trx) => updateRecheck(trx, run, recheck, update));
}
