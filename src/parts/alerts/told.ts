import type { RaisedAlert } from "../../app/answers.ts";
import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { AlertSeverity } from "./message.ts";

interface ToldRow {
  id: string;
  rule: string;
  severity: AlertSeverity;
  change: string;
  title: string | null;
  channels: string[];
}

const told = (condition: string): string =>
  `select a.id, a.rule, a.severity, h.change, a.facts->>'title' as title,
          array(select distinct o.channel from alerts.outbox o where o.alert_id = a.id and o.stage = h.stage
                order by o.channel) as channels
   from alerts.history h join alerts.alerts a on a.id = h.alert_id
   where ${condition} order by h.id limit 100`;

const toldOf = ({ id, ...row }: ToldRow): RaisedAlert => ({ ...row, id: Number(id) });

/**
 * Called before a transaction writes, it returns the function that reads the alerts which the transaction sent.
 * Repeatable read only.
 */
export async function watchTold(trx: Knex.Transaction): Promise<() => Promise<RaisedAlert[]>> {
  const newest = await trx("alerts.history").max<{ id: string | null }[]>("id as id");
  const after = newest[0]?.id ?? 0;
  return async () => {
    const { rows } = await trx.raw<{ rows: ToldRow[] }>(told("h.id > ?"), [after]);
    return rows.map(toldOf);
  };
}

/**
 * The alerts about an event and its objects from a worker's transaction that began at this time: both have the
 * database's time. One statement.
 */
export async function toldAt(
  db: Knex,
  at: Date,
  { ids, eventId }: { ids: readonly string[]; eventId: string },
): Promise<RaisedAlert[]> {
  const { rows } = await db.raw<{ rows: ToldRow[] }>(
    // The driver's times have milliseconds only.
    told(`h.recorded_at >= :at::timestamptz and h.recorded_at < :at::timestamptz + interval '1 millisecond'
      and (a.order_id = any(:ids::text[]) or a.subscription_id = any(:ids::text[])
           or a.transaction_id = any(:ids::text[]) or a.customer_id = any(:ids::text[])
           or a.key = any(:keys::text[]))`),
    { at, ids: sqlArray(ids), keys: sqlArray([`dead:${eventId}`, `event-id:${eventId}`]) },
  );
  return rows.map(toldOf);
}
