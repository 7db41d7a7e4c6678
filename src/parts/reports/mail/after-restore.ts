import type { Knex } from "knex";
import type { MailedPeriod } from "./mailings.ts";

const byOther = "sent before the restore, as far as is known";

/**
 * Takes mails for sent that the lost system has sent since the backup: those that were due then, and those of these
 * periods. Needs a transaction; idempotent.
 */
export async function presumeMailed(
  trx: Knex.Transaction,
  periods: readonly MailedPeriod[],
  ranUntil: Date,
): Promise<void> {
  const sent = { state: "sent", settled_at: trx.fn.now(), error: byOther };
  await trx("reports.mailings").where({ state: "due" }).where("ordered_at", "<=", ranUntil).update(sent);
  for (const { key, from, to } of periods) {
    await trx("reports.mailings")
      .insert({ key, from_day: from, to_day: to, as_of: ranUntil, message_id: "", ...sent })
      .onConflict("key")
      .ignore();
  }
}
