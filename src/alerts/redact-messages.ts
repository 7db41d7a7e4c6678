import type { Knex } from "knex";

/** Facts of messages that tell who somebody is; alerts themselves hold ids and amounts only. */
const personalLabels = ["Customer", "Card"];

/**
 * Takes out of the messages about a customer what tells who it is, also out of those that wait. One statement; gives back
 * how many messages there were. Idempotent.
 */
export async function redactMessages(db: Knex, customerId: string): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update alerts.outbox o set message = jsonb_set(o.message, '{facts}', (
       select coalesce(jsonb_agg(case when f->>'label' = any(?::text[])
                then jsonb_build_object('label', f->'label', 'value', '[redacted]') else f end order by n), '[]')
       from jsonb_array_elements(o.message->'facts') with ordinality as each(f, n)))
     from alerts.alerts a where a.id = o.alert_id and a.customer_id = ?`,
    [personalLabels, customerId],
  );
  return rowCount;
}
