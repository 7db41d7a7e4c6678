import type { Knex } from "knex";

/** Forgets what no rule looks at any more, and workers that were missed for an hour. */
export async function tidyUp(trx: Knex.Transaction): Promise<void> {
  await trx("alerts.event_hours").whereRaw("hour < now() - interval '100 days'").delete();
  await trx("receiver.answers_by_minute").whereRaw("minute < now() - interval '7 days'").delete();
  await trx("alerts.heartbeats")
    .whereRaw("starts_with(name, 'worker') and beat_at < now() - interval '1 hour'")
    .delete();
}
