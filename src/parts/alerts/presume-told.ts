import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { AlertContext } from "./alert-context.ts";
import { type Announcement, announce } from "./outbox/announce.ts";
import { lastBoundary } from "./rules/digests.ts";

/** The detail of a transition that another system reported before this database was restored. */
export const presumedTold = { presumed_told: true } as const;

/** SQL condition on the detail of a transition. */
export const isNotPresumedTold = (detail: string): string => `${detail}->>'presumed_told' is null`;

/** Marks a message that this database did not send. */
const whoTold = "sent before the restore, as far as is known";

/** Above every step of escalation. */
const afterLastStep = 32_767;

/**
 * Marks messages as sent without sending them: channels that got an alert also get its end. These alerts no longer
 * escalate. Needs the transaction of the change; idempotent.
 */
export async function presumeTold(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  announcements: readonly Announcement[],
): Promise<void> {
  if (announcements.length === 0) return;
  await announce(trx, alertContext, announcements);
  const ids = sqlArray(announcements.map(({ alertId }) => alertId));
  await trx.raw(
    `update alerts.outbox set state = 'sent', last_error = ?
     where state = 'pending' and alert_id = any(?::bigint[])`,
    [whoTold, ids],
  );
  await trx.raw(
    "update alerts.digest_items set told_at = now() where told_at is null and alert_id = any(?::bigint[])",
    [ids],
  );
  await trx.raw("update alerts.alerts set escalations = ? where id = any(?::bigint[])", [afterLastStep, ids]);
}

/** The messages presumed sent. */
interface PresumedTold {
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
