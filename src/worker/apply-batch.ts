import type { Knex } from "knex";
import { claimEvents } from "../inbox/claim.ts";
import type { ClaimedEvent } from "../inbox/claim.ts";
import { wantFetches } from "../inbox/fetches.ts";
import type { WantedFetch } from "../inbox/fetches.ts";
import { postponeEvent, settleEvents } from "../inbox/settle.ts";
import type { Settlement } from "../inbox/settle.ts";
import { applyObservations } from "../mirror/apply.ts";
import type { Outcome } from "../mirror/apply.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { eventRetryPolicy, retryDelayMs } from "../queue/retry-policy.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";
import { interpretEvent } from "./interpret-event.ts";
import { settleLater } from "./settle-later.ts";
import { isSerializationFailure, withRetries } from "./transaction-retry.ts";

export interface ApplyDeps {
  db: Knex;
  log: Log;
  random: Random;
  places: Readonly<EnvelopePlaces>;
}

/** The service's lists have no filter for disputes but this one; it stands for all of them. */
export const disputedTransactions = { resource: "disputed-transactions", id: "*" } as const;

/**
 * Applies those of the events that are still unapplied: mirror, history, wanted reads and inbox states in one
 * transaction. If the batch fails, its events are applied one by one, so that a poisonous one fails alone and
 * waits for its next attempt. Idempotent. Throws only when the database does not answer.
 */
export async function applyBatch(deps: ApplyDeps, seqs: readonly number[]): Promise<void> {
  try {
    await withRetries(deps, () => deps.db.transaction((trx) => applyInTransaction(deps, trx, seqs)));
  } catch (err) {
    if (isConnectionFailure(err)) throw err;
    deps.log.warn({ err, events: seqs.length }, "a batch failed, its events are applied one by one");
    for (const seq of seqs) await applyAlone(deps, seq);
  }
}

async function applyAlone(deps: ApplyDeps, seq: number): Promise<void> {
  const { db, log, random } = deps;
  try {
    await withRetries(deps, () => db.transaction((trx) => applyInTransaction(deps, trx, [seq])));
  } catch (err) {
    if (isConnectionFailure(err)) throw err;
    const attempts = await db("inbox.progress").where({ seq }).first<{ attempts: number }>("attempts");
    const attempt = (attempts?.attempts ?? 0) + 1;
    const delayMs = retryDelayMs(eventRetryPolicy, attempt, random);
    const reason = `attempt ${attempt}: ${reasonOf(err)}`;
    log.error({ err, seq, attempt, delayMs }, delayMs === null ? "an event is dead" : "an event failed");
    await postponeEvent(db, { seq, reason, delayMs });
  }
}

async function applyInTransaction(
  deps: ApplyDeps,
  trx: Knex.Transaction,
  seqs: readonly number[],
): Promise<void> {
  // As-of reports rely on it: what a writer has not committed by then is not recorded.
  await trx.raw("set local statement_timeout = '30s'; set local lock_timeout = '10s'");
  const events = await claimEvents(trx, seqs);
  if (events.length === 0) return;
  const settlements = await applyEvents(deps, trx, events);
  await settleEvents(trx, settlements);
}

async function applyEvents(
  { log, places }: ApplyDeps,
  trx: Knex.Transaction,
  events: readonly ClaimedEvent[],
): Promise<Settlement[]> {
  const interpreted = events.map((event) => ({ event, meaning: interpretEvent(places, event) }));
  const states = interpreted.flatMap(({ event, meaning }) =>
    meaning.kind === "state" ? [{ event, observation: meaning.observation }] : [],
  );
  const { outcomes, ties } = await applyObservations(
    trx,
    states.map(({ observation }) => observation),
  );
  const wanted: WantedFetch[] = ties.map(({ resource, id, updatedAt }) => ({
    resource,
    id,
    reason: "tie",
    notBefore: settleLater(updatedAt),
  }));

  const settlements = states.map(({ event, observation }, n): Settlement => {
    const outcome = outcomes[n];
    if (outcome === undefined) throw new Error("an observation has no outcome");
    if (outcome.outcome === "thin") {
      const { resource } = observation;
      wanted.push({ resource, id: outcome.id, reason: "thin", notBefore: null });
    }
    return settlementOf(event.seq, observation.resource, outcome);
  });
  for (const { event, meaning } of interpreted) {
    if (meaning.kind === "state") continue;
    if (meaning.kind === "dispute") {
      wanted.push({ ...disputedTransactions, reason: "dispute", notBefore: null });
    }
    settlements.push(settlementWithoutState(event.seq, meaning));
  }
  for (const { seq, state, reason } of settlements) {
    if (state === "dead") log.error({ seq, reason }, "an event is dead");
  }
  await wantFetches(trx, wanted);
  return settlements;
}

function settlementOf(seq: number, resource: string, outcome: Outcome): Settlement {
  const known = { seq, resourceType: resource };
  switch (outcome.outcome) {
    case "applied":
    case "stale":
      return { ...known, state: outcome.outcome, reason: null, resourceId: outcome.id };
    case "thin":
      return { ...known, state: "applied", reason: "thin: read from the service", resourceId: outcome.id };
    case "unreadable":
      return { ...known, state: "dead", reason: outcome.reason, resourceId: null };
  }
}

function settlementWithoutState(
  seq: number,
  meaning: { kind: "dispute" } | { kind: "ignored" | "unreadable"; reason: string },
): Settlement {
  const unknown = { seq, resourceType: null, resourceId: null };
  switch (meaning.kind) {
    case "dispute":
      return { ...unknown, state: "applied", reason: "dispute: read from the service" };
    case "ignored":
      return { ...unknown, state: "ignored", reason: meaning.reason };
    case "unreadable":
      return { ...unknown, state: "dead", reason: meaning.reason };
  }
}

/** The database, not the event, is at fault: no SQLSTATE, or one of class 08, 53, 57P or 58. */
function isConnectionFailure(error: unknown): boolean {
  if (isSerializationFailure(error)) return true;
  const code = (error as { code?: unknown }).code;
  if (typeof code === "string" && /^[0-9A-Z]{5}$/.test(code)) return /^(08|53|57P|58)/.test(code);
  return (
    typeof code === "string" || (error instanceof Error && /^(Knex|Connection)/.test(error.name))
  );
}

/** A short reason without values: messages of the database may hold personal data. */
function reasonOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  if (typeof code === "string") return `database error ${code}`;
  return error instanceof Error ? error.name : "unknown error";
}
