import type { Knex } from "knex";
import type { AlertContext } from "./alert-context.ts";
import { whoTold } from "./presume-told.ts";
import { lastBoundary } from "./rules/digests.ts";

/** The messages presumed sent. */
export interface PresumedTold {
  messages: number;
  digestItems: number;
}

/**
 * After a restore: marks as sent what the lost system had already sent. That covers messages that were due, items of
 * due digests, lists of storms, and steps of escalation. Messages due later are still sent. Needs a transaction;
 * idempotent.
 */
export async function presumeSent(
  trx: Knex.Transaction,
  { settings, timeZone }: Pick<AlertContext, "settings" | "timeZone">,
  ranUntil: Date,
): Promise<PresumedTold> {
  const messages = await trx("alerts.outbox")
    .where({ state: "pending" })
    .where("due_at", "<=", ranUntil)
    .update({ state: "sent", next_attempt_at: null, last_error: whoTold });
  const boundary = lastBoundary({ settings, timeZone, clock: { now: () => ranUntil } });
  const digestItems = await trx("alerts.digest_items")
    .whereNull("told_at")
    .where("queued_at", "<", boundary)
    .update({ told_at: trx.fn.now() });
  await trx("alerts.storm_items")
    .whereNull("told_at")
    .where("queued_at", "<=", ranUntil)
    .update({ told_at: trx.fn.now() });
  for (const [index, { afterMinutes, severities }] of settings.escalation.entries()) {
    await trx("alerts.alerts")
      .where({ state: "open" })
      .where("escalations", "<", index + 1)
      .whereIn("severity", [...severities])
      .whereRaw("created_at <= ?::timestamptz - make_interval(mins => ?)", [ranUntil, afterMinutes])
      .update({ escalations: index + 1, escalated_at: ranUntil });
  }
  return { messages, digestItems };
}
