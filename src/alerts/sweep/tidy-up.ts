import type { Knex } from "knex";
import type { AlertDesk } from "../desk.ts";

const dayMs = 86_400_000;

/** Forgets what no rule looks at any more, and workers that were missed for an hour. */
export async function tidyUp(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const oldestHour = new Date(desk.serviceClock.now().getTime() - 100 * dayMs);
  await trx("alerts.event_hours").where("hour", "<", oldestHour).delete();
  await trx("receiver.answers_by_minute").whereRaw("minute < now() - interval '7 days'").delete();
  await trx("alerts.heartbeats")
    .whereRaw("starts_with(name, 'worker') and beat_at < now() - interval '1 hour'")
    .delete();
}
