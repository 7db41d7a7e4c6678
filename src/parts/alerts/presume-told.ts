import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { AlertContext } from "./alert-context.ts";
import { type Announcement, announce } from "./outbox/announce.ts";

/** The detail of a transition that another system reported before this database was restored. */
export const presumedTold = { presumed_told: true } as const;

/** SQL condition on the detail of a transition. */
export const isNotPresumedTold = (detail: string): string => `${detail}->>'presumed_told' is null`;

/** Marks a message that this database did not send. */
export const whoTold = "sent before the restore, as far as is known";

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
