import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import { type Charge, doubleWithinMinutes } from "./double-charges.ts";

/** An order as a person recognizes it. Its item and its card's digits are personal data. */
export interface ListedCharge extends Charge {
  orderNumber: string | null;
  status: string | null;
  /** The name of the first item, or its product's id. */
  item: string | null;
  items: number;
}

interface ChargeRow {
  id: string;
  order_number: string | null;
  customer_id: string | null;
  status: string | null;
  total: string | null;
  currency: string | null;
  payment_method_id: string | null;
  card_brand: string | null;
  card_last_four: string | null;
  created_at: Date | null;
  took_money: boolean;
  item: string | null;
  items: number;
}

/** More charges of one customer within minutes than any customer makes. */
const mostNear = 20;
const within = `interval '${doubleWithinMinutes} minutes'`;

/**
 * These orders, and those of the same customers so near in time that one may be a double of the other, by id. Personal
 * data. One statement, indexes.
 */
export async function readCharges(db: Knex, orderIds: readonly string[]): Promise<ReadonlyMap<string, ListedCharge>> {
  if (orderIds.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: ChargeRow[] }>(
    `with asked as materialized (
       select id, customer_id, created_at from mirror.orders where id = any(:ids::text[])
     ), near as materialized (
       select id from asked union select n.id from asked, lateral (
         select o.id from mirror.orders o where o.customer_id = asked.customer_id
           and o.created_at between asked.created_at - ${within} and asked.created_at + ${within}
         limit ${mostNear}) n
     )
     select o.id, o.order_number, o.customer_id, o.status, o.total, o.currency, o.payment_method_id, o.card_brand,
       o.card_last_four, o.created_at, coalesce(reports.is_paid(o.status), false) as took_money,
       coalesce(o.items->0->>'name', o.items->0->>'product_id') as item,
       case when jsonb_typeof(o.items) = 'array' then jsonb_array_length(o.items) else 0 end as items
     from near join mirror.orders o using (id)`,
    { ids: sqlArray(orderIds) },
  );
  return new Map(rows.map((row) => [row.id, chargeOf(row)]));
}

const chargeOf = (row: ChargeRow): ListedCharge => ({
  id: row.id,
  orderNumber: row.order_number,
  customerId: row.customer_id,
  status: row.status,
  amount: row.total === null ? null : BigInt(row.total),
  currency: row.currency,
  card: { id: row.payment_method_id, brand: row.card_brand, lastFour: row.card_last_four },
  tookMoney: row.took_money,
  at: row.created_at,
  item: row.item,
  items: row.items,
});

/** The newest order of each of these customers, by the customer's id. One statement, an index. */
export async function newestOrders(db: Knex, customerIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (customerIds.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: { customer_id: string; id: string }[] }>(
    `select c.id as customer_id, n.id from unnest(?::text[]) as c(id), lateral (
       select o.id from mirror.orders o where o.customer_id = c.id
       order by o.created_at desc nulls last, o.id desc limit 1) n`,
    [sqlArray(customerIds)],
  );
  return new Map(rows.map(({ customer_id, id }) => [customer_id, id]));
}
