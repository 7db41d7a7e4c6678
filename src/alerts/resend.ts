import type { Knex } from "knex";

export interface Resend {
  /** Of one alert; left out: of all. */
  alertId?: number;
  /** To one channel; left out: to all. */
  channel?: string;
  /** Of those, the messages that were written since then. */
  withinHours: number;
}

/**
 * Puts messages that were given up back to be sent, with the keys they had: what arrived all the same is known as a
 * repeat, and what is over meanwhile is dropped when its turn comes. Gives back how many, by channel. One statement;
 * idempotent.
 */
export async function resendFailed(
  db: Knex,
  { alertId, channel, withinHours }: Resend,
): Promise<Record<string, number>> {
  const { rows } = await db.raw<{ rows: { channel: string; n: string }[] }>(
    `with again as (
       update alerts.outbox set state = 'pending', attempts = 0, next_attempt_at = null, last_error = null,
              due_at = now()
       where state = 'failed' and created_at > now() - make_interval(hours => :withinHours)
         and (:alertId::bigint is null or alert_id = :alertId) and (:channel::text is null or channel = :channel)
       returning channel
     )
     select channel, count(*) as n from again group by channel order by channel`,
    { alertId: alertId ?? null, channel: channel ?? null, withinHours },
  );
  return Object.fromEntries(rows.map(({ channel: name, n }) => [name, Number(n)]));
}
