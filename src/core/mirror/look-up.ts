import type { Knex } from "knex";
import { isWireId } from "../contract/wire-types.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { mirrorResources, resourceNamed } from "./resources.ts";
import type { MirrorResource } from "./resources/resource.ts";
import type { ObjectKey, Resource } from "./snapshot.ts";

/** An object as a list shows it, without personal data. */
export interface ListedObject extends ObjectKey {
  /** Its own id, of a customer. */
  customerId: string | null;
  orderNumber: string | null;
  /** `sale` or `refund`, of a transaction. */
  type: string | null;
  status: string | null;
  /** Minor units, as the server prints them. */
  amount: string | null;
  currency: string | null;
  createdAt: Date | null;
}

/** A part of a list: so many objects after the one with an id, or from the beginning. */
export interface ListPart {
  after: string | null;
  limit: number;
}

export interface ListedRow {
  resource: Resource;
  id: string;
  customer_id: string | null;
  order_number: string | null;
  type: string | null;
  status: string | null;
  amount: string | null;
  currency: string | null;
  created_at: Date | null;
}

/** Columns of a row `t`. */
export function listedColumns({ name, amount, table }: MirrorResource): string {
  const own = table === "customers" ? "null" : "t.status";
  return `'${name}' as resource, t.id, t.${table === "customers" ? "id" : "customer_id"} as customer_id, ${table === "orders" ? "t.order_number" : "null"} as order_number,
    ${table === "transactions" ? "t.type" : "null"} as type, ${own} as status,
    ${amount === undefined ? "null::bigint" : `t.${amount}`} as amount,
    ${amount === undefined ? "null" : "t.currency"} as currency, t.created_at`;
}

export const listedOf = (row: ListedRow): ListedObject => ({
  resource: row.resource,
  id: row.id,
  customerId: row.customer_id,
  orderNumber: row.order_number,
  type: row.type,
  status: row.status,
  amount: row.amount,
  currency: row.currency,
  createdAt: row.created_at,
});

/** The objects with this id, of any kind; an id in capitals also finds the one in small letters. One statement. */
export async function findById(db: Knex, id: string): Promise<ListedObject[]> {
  if (!isWireId(id)) return [];
  const ids = [...new Set([id, id.toLowerCase()])];
  const selects = mirrorResources.map(
    (resource) => `select ${listedColumns(resource)} from mirror.${resource.table} t where t.id = any(:ids::text[])`,
  );
  const { rows } = await db.raw<{ rows: ListedRow[] }>(selects.join(" union all "), {
    ids: sqlArray(ids),
  });
  return rows.map(listedOf);
}

/** A shorter beginning would find too many. */
const shortestIdStart = 8;

/**
 * The objects whose ids begin with this text, of any kind, at most so many of each; also in small letters. None for a
 * text that is shorter than eight characters. One statement, indexes.
 */
export async function findByIdStart(db: Knex, start: string, limit: number): Promise<ListedObject[]> {
  if (start.length < shortestIdStart || !isWireId(start)) return [];
  // In a subquery of its own, each beginning is a range of the index.
  const selects = mirrorResources.map(
    (resource) =>
      `select ${listedColumns(resource)} from unnest(:starts::text[]) as s(start), lateral (
         select * from mirror.${resource.table} o
         where o.id >= s.start collate "C" and o.id < (s.start || U&'\\+10FFFF') collate "C"
         order by o.id limit :limit) t`,
  );
  const { rows } = await db.raw<{ rows: ListedRow[] }>(selects.join(" union all "), {
    starts: sqlArray([...new Set([start, start.toLowerCase()])]),
    limit,
  });
  return rows.map(listedOf);
}

/** The orders with this number in any case, the newest first. One statement, indexes. */
export async function findByOrderNumber(db: Knex, number: string, limit: number): Promise<ListedObject[]> {
  const { rows } = await db.raw<{ rows: ListedRow[] }>(
    `select ${listedColumns(resourceNamed("order"))} from mirror.orders t
     where t.order_number = any(array[:number, upper(:number)])
       or t.order_number <> upper(t.order_number) and lower(t.order_number) = lower(:number)
     order by t.created_at desc nulls last, t.id desc limit :limit`,
    { number, limit },
  );
  return rows.map(listedOf);
}

/**
 * The customers with this e-mail address, in any case of its letters, the newest first. Personal data: the access is
 * recorded. One statement, an index.
 */
export async function findByEmail(db: Knex, email: string, limit: number): Promise<ListedObject[]> {
  const { rows } = await db.raw<{ rows: ListedRow[] }>(
    `select ${listedColumns(resourceNamed("customer"))} from mirror.customers t
     where t.email is not null and lower(t.email) = lower(:email)
     order by t.created_at desc nulls last, t.id desc limit :limit`,
    { email, limit },
  );
  return rows.map(listedOf);
}

/**
 * The orders whose card ends with these four digits, the newest first, after a certain one. Personal data: the access
 * is recorded. One statement, an index.
 */
export async function findByLastFour(db: Knex, digits: string, { after, limit }: ListPart): Promise<ListedObject[]> {
  const { rows } = await db.raw<{ rows: ListedRow[] }>(
    `select ${listedColumns(resourceNamed("order"))} from mirror.orders t
     where t.card_last_four = :digits and t.created_at is not null ${isAfter("orders", after)}
     order by t.created_at desc, t.id desc limit :limit`,
    { digits, limit, ...(after === null ? {} : { after }) },
  );
  return rows.map(listedOf);
}

/** The first condition finds the place in the index; the second orders objects with one creation time. */
export function isAfter(table: string, after: string | null): string {
  if (after === null) return "";
  const place = `(select p.created_at from mirror.${table} p where p.id = :after)`;
  return `and t.created_at <= ${place} and (t.created_at < ${place} or t.id < :after)`;
}

/** A list of objects that belong to another: their resource, and the column that names the owner. */
export interface Relation {
  /** Used in URLs. */
  name: string;
  of: Resource;
  to: Resource;
  column: string;
}

export const relations: readonly Relation[] = [
  { name: "orders", of: "customer", to: "order", column: "customer_id" },
  { name: "subscriptions", of: "customer", to: "subscription", column: "customer_id" },
  { name: "orders", of: "subscription", to: "order", column: "subscription_id" },
  { name: "transactions", of: "order", to: "transaction", column: "order_id" },
];

/** The objects that belong to another one, the newest first, after a certain one. One statement, an index. */
export async function listRelated(
  db: Knex,
  { to, column }: Relation,
  id: string,
  { after, limit }: ListPart,
): Promise<ListedObject[]> {
  const resource = resourceNamed(to);
  const { rows } = await db.raw<{ rows: ListedRow[] }>(
    `select ${listedColumns(resource)} from mirror.${resource.table} t
     where t.${column} = :owner ${isAfter(resource.table, after)}
     order by t.created_at desc nulls last, t.id desc limit :limit`,
    { owner: id, limit, ...(after === null ? {} : { after }) },
  );
  return rows.map(listedOf);
}

/** A chargeback, derived from the history of an order and its sale (chargebacks.sql). */
export interface StoredChargeback {
  /** The order's id; the sale's where there is no order. */
  key: string;
  orderId: string | null;
  transactionId: string | null;
  state: string;
  amount: string | null;
  currency: string | null;
  openedAt: Date | null;
  acceptedAt: Date | null;
  dismissedAt: Date | null;
  endedAt: Date | null;
  cause: string | null;
}

/** The chargebacks with these keys. One statement. */
export async function findChargebacks(db: Knex, keys: readonly string[]): Promise<StoredChargeback[]> {
  if (keys.length === 0) return [];
  const { rows } = await db.raw<{ rows: ChargebackRow[] }>(
    "select * from mirror.chargebacks where key = any(?::text[])",
    [sqlArray(keys)],
  );
  return rows.map((row) => ({
    key: row.key,
    orderId: row.order_id,
    transactionId: row.transaction_id,
    state: row.state,
    amount: row.amount,
    currency: row.currency,
    openedAt: row.opened_at,
    acceptedAt: row.accepted_at,
    dismissedAt: row.dismissed_at,
    endedAt: row.resolved_at,
    cause: row.last_cause,
  }));
}

interface ChargebackRow {
  key: string;
  order_id: string | null;
  transaction_id: string | null;
  state: string;
  amount: string | null;
  currency: string | null;
  opened_at: Date | null;
  accepted_at: Date | null;
  dismissed_at: Date | null;
  resolved_at: Date | null;
  last_cause: string | null;
}

/** True where no object was ever written. One statement. */
export async function isMirrorEmpty(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { is_empty: boolean }[] }>(
    `select not exists (select from mirror.orders) and not exists (select from mirror.customers)
       and not exists (select from mirror.transactions) and not exists (select from mirror.subscriptions)
       as is_empty`,
  );
  return rows[0]?.is_empty === true;
}
