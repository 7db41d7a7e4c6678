import type { Knex } from "knex";
import type { EventHour, Missing } from "../rules/silence.ts";

interface MissingRow {
  n: string;
  oldest: Date | null;
  examples: string[] | null;
}

const missingOf = (row: MissingRow | undefined): Missing | null =>
  row === undefined || row.oldest === null
    ? null
    : { count: Number(row.n), oldest: row.oldest, examples: row.examples ?? [] };

/** Retries that were due before `dueBefore` (service time) and of which no attempt is known. One statement. */
export async function findMissingRetries(db: Knex, dueBefore: Date): Promise<Missing | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(o.next_retry_at) as oldest,
            (array_agg('order ' || coalesce(o.order_number, o.id) order by o.next_retry_at, o.id))[1:10] as examples
     from mirror.orders o left join mirror.subscriptions s on s.id = o.subscription_id
     where o.status = 'failed' and o.next_retry_at is not null and o.next_retry_at < ?
       and coalesce(s.status, '') not in ('canceled', 'completed')
       and not exists (select from mirror.transactions t
                       where t.order_id = o.id and t.type = 'sale' and t.created_at >= o.next_retry_at)`,
    [dueBefore],
  );
  return missingOf(rows[0]);
}

/** Active subscriptions whose billing date passed before `dueBefore` (service time) without an order. One statement. */
export async function findMissingRenewals(db: Knex, dueBefore: Date): Promise<Missing | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(s.next_billing_date) as oldest,
            (array_agg('subscription ' || s.id order by s.next_billing_date, s.id))[1:10] as examples
     from mirror.subscriptions s
     where s.status = 'active' and s.next_billing_date < ? and s.deleted_at is null
       and not exists (select from mirror.orders o
                       where o.subscription_id = s.id and o.created_at >= s.next_billing_date - interval '1 day')`,
    [dueBefore],
  );
  return missingOf(rows[0]);
}

/** How many events the hours since then brought, by the service's clock. One statement. */
export const findEventHours = async (db: Knex, since: Date): Promise<EventHour[]> => {
  const rows = await db("alerts.event_hours")
    .where("hour", ">=", since)
    .select<{ hour: Date; events: string }[]>("hour", "events");
  return rows.map(({ hour, events }) => ({ hour, events: Number(events) }));
};

/** Of whom nothing was heard for so long, by the names that begin so. One statement. */
export async function findStopped(
  db: Knex,
  { prefix, afterMinutes }: { prefix: string; afterMinutes: number },
): Promise<Missing | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(beat_at) as oldest, (array_agg(name order by beat_at, name))[1:10] as examples
     from alerts.heartbeats where starts_with(name, ?) and beat_at < now() - make_interval(mins => ?)`,
    [prefix, afterMinutes],
  );
  return missingOf(rows[0]);
}

/** Whether anything was ever heard of one of this name. One statement. */
export const hasBeaten = async (db: Knex, name: string): Promise<boolean> =>
  (await db("alerts.heartbeats").where({ name }).first("name")) !== undefined;

/**
 * Whether what arrived some minutes ago has still not been applied: then the mirror is behind, and what it lacks may be
 * waiting. One statement.
 */
export async function isApplyingLate(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { late: boolean }[] }>(
    `select exists (
       select from (select seq from inbox.progress where state = 'received' order by seq limit 1) oldest
       join inbox.receipts r using (seq) where r.received_at < now() - interval '2 minutes') as late`,
  );
  return rows[0]?.late === true;
}

/** Whether the look through the inbox has come to its end: what it has not seen may be of any hour. One statement. */
export async function isInboxLookedThrough(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { left: boolean }[] }>(
    `select exists (
       select from inbox.receipts
       where seq > coalesce((select (value->>'seq')::bigint from alerts.marks where name = 'inbox'), 0)) as left`,
  );
  return rows[0]?.left !== true;
}
