import type { Knex } from "knex";
import { raise } from "./conditions.ts";
import type { AlertDesk } from "./desk.ts";
import { deadEventCondition } from "./rules/events.ts";

export interface DeadEvent {
  seq: number;
  reason: string | null;
}

/** Tells of events that are given up. Belongs into the transaction that marks them as dead. */
export async function reportDead(
  trx: Knex.Transaction,
  desk: AlertDesk,
  dead: readonly DeadEvent[],
): Promise<void> {
  if (dead.length === 0) return;
  const reasons = new Map(dead.map(({ seq, reason }) => [seq, reason]));
  const rows = await trx("inbox.receipts")
    .whereIn("seq", [...reasons.keys()])
    .select<{ seq: string; event_id: string; type: string | null }[]>("seq", "event_id", "type");
  const at = desk.clock.now();
  const conditions = rows.map(({ seq, event_id: eventId, type }) => {
    const reason = reasons.get(Number(seq)) ?? "no reason given";
    const event = { eventId, seq: Number(seq), type: type?.slice(0, 80) ?? null, reason };
    return deadEventCondition(desk.settings.rules, event, at);
  });
  await raise(trx, desk, conditions, "event");
}
