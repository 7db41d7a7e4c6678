import type { Knex } from "knex";
import type { AlertContext } from "./alert-context.ts";
import { whoTold } from "./presume-told.ts";
import { lastBoundary } from "./rules/digests.ts";

/** What was taken for told. */
export interface PresumedTold {
  messages: number;
  digestItems: number;
}

/**
 * Takes for told what a database held back at the moment of its backup and the lost system has sent until it stopped:
 * messages that were due, items whose digest was, lists of storms, and steps of escalation. What was due later is still
 * sent. Needs a transaction; idempotent.
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
