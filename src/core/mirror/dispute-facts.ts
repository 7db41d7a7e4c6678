import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { Chargeback } from "./chargebacks.ts";

/** A disputed sale, its customer, and the customer's earlier orders, as the mirror has them. Personal data. */
export interface DisputeFacts {
  order: DisputedOrder | null;
  customer: DisputingCustomer | null;
  transactions: DisputeTransaction[];
  /** The latest first. */
  earlier: EarlierOrder[];
  /** The oldest first. */
  timeline: DisputeState[];
  /** Lists that were cut: the end of each is missing. */
  cut: readonly CutList[];
}

/** The lists that end at a number of rows. */
export type CutList = keyof typeof mostRows;

/** A pack for a bank is read by a person. */
export const mostRows = { transactions: 200, earlier: 200, timeline: 500 } as const;

/** Fields are as the service has them; absent ones are null. */
export interface DisputedOrder {
  id: string;
  orderNumber: string | null;
  status: string | null;
  createdAt: Date | null;
  subtotalMinor: bigint | null;
  discountMinor: bigint | null;
  totalMinor: bigint | null;
  currency: string | null;
  couponCode: string | null;
  description: string | null;
  subscriptionId: string | null;
  cycle: number | null;
  paymentMethodId: string | null;
  cardBrand: string | null;
  cardLastFour: string | null;
  items: readonly Readonly<Record<string, unknown>>[];
  address: Address | null;
}

/** The lines of a shipping address, by the field's name. */
export type Address = Readonly<Record<string, string>>;

export interface DisputingCustomer {
  id: string;
  name: string;
  email: string | null;
  phone: string | null;
  company: string | null;
  createdAt: Date | null;
}

export interface DisputeTransaction {
  id: string;
  type: string | null;
  status: string | null;
  amountMinor: bigint | null;
  currency: string | null;
  createdAt: Date | null;
  processorTransactionId: string | null;
  authorizationCode: string | null;
  avsResult: string | null;
  cvvResult: string | null;
}

/** An order of the same customer that was paid before and never disputed. */
export interface EarlierOrder {
  id: string;
  orderNumber: string | null;
  createdAt: Date;
  totalMinor: bigint | null;
  currency: string | null;
  status: string | null;
  paymentMethodId: string | null;
  cardBrand: string | null;
  cardLastFour: string | null;
  address: Address | null;
}

/** A state that the order or one of its transactions was in. */
export interface DisputeState {
  at: Date;
  resource: "order" | "transaction";
  id: string;
  status: string | null;
  type: string | null;
}

/** Reads the facts of a chargeback. Five statements. */
export async function readDisputeFacts(
  db: Knex,
  { orderId, transactionId, customerId, openedAt }: Chargeback,
): Promise<DisputeFacts> {
  const [order, customer, transactions] = await Promise.all([
    readOrder(db, orderId),
    readCustomer(db, customerId),
    readTransactions(db, orderId, transactionId),
  ]);
  const before = order?.createdAt ?? openedAt;
  const [earlier, timeline] = await Promise.all([
    readEarlier(db, customerId, before),
    readTimeline(
      db,
      orderId,
      transactions.map(({ id }) => id),
    ),
  ]);
  const lists = { transactions, earlier, timeline };
  const names = ["transactions", "earlier", "timeline"] as const;
  return {
    order,
    customer,
    transactions: transactions.slice(0, mostRows.transactions),
    earlier: earlier.slice(0, mostRows.earlier),
    timeline: timeline.slice(0, mostRows.timeline),
    cut: names.filter((name) => lists[name].length > mostRows[name]),
  };
}

type Raw = Record<string, unknown>;

async function readOrder(db: Knex, id: string | null): Promise<DisputedOrder | null> {
  if (id === null) return null;
  const row = await db("mirror.orders").where({ id }).first<Raw | undefined>();
  if (row === undefined) return null;
  return {
    id,
    orderNumber: text(row["order_number"]),
    status: text(row["status"]),
    createdAt: time(row["created_at"]),
    subtotalMinor: minor(row["subtotal"]),
    discountMinor: minor(row["discount_amount"]),
    totalMinor: minor(row["total"]),
    currency: text(row["currency"]),
    couponCode: text(row["coupon_code"]),
    description: text(row["description"]),
    subscriptionId: text(row["subscription_id"]),
    cycle: typeof row["subscription_cycle"] === "number" ? row["subscription_cycle"] : null,
    paymentMethodId: text(row["payment_method_id"]),
    cardBrand: text(row["card_brand"]),
    cardLastFour: text(row["card_last_four"]),
    items: Array.isArray(row["items"]) ? row["items"].filter(isObject) : [],
    address: addressIn(row["data"]),
  };
}

async function readCustomer(db: Knex, id: string | null): Promise<DisputingCustomer | null> {
  if (id === null) return null;
  const row = await db("mirror.customers").where({ id }).first<Raw | undefined>();
  if (row === undefined) return null;
  return {
    id,
    name: [text(row["first_name"]), text(row["last_name"])].filter((part) => part !== null).join(" "),
    email: text(row["email"]),
    phone: text(row["phone"]),
    company: text(row["company"]),
    createdAt: time(row["created_at"]),
  };
}

async function readTransactions(
  db: Knex,
  orderId: string | null,
  transactionId: string | null,
): Promise<DisputeTransaction[]> {
  const { rows } = await db.raw<{ rows: Raw[] }>(
    `select t.id, t.type, t.status, t.amount, t.currency, t.created_at, t.processor_transaction_id,
            t.data->'processor_response' as response
     from mirror.transactions t where t.id = any(array(
       select x.id from mirror.transactions x where x.order_id = ? union select ?)) and t.deleted_at is null
     order by t.created_at, t.id limit ?`,
    [orderId, transactionId, mostRows.transactions + 1],
  );
  return rows.map((row) => {
    const response = isObject(row["response"]) ? row["response"] : {};
    return {
      id: String(row["id"]),
      type: text(row["type"]),
      status: text(row["status"]),
      amountMinor: minor(row["amount"]),
      currency: text(row["currency"]),
      createdAt: time(row["created_at"]),
      processorTransactionId: text(row["processor_transaction_id"]),
      authorizationCode: text(response["authorization_code"]),
      avsResult: text(response["avs_result"]),
      cvvResult: text(response["cvv_result"]),
    };
  });
}

async function readEarlier(db: Knex, customerId: string | null, before: Date): Promise<EarlierOrder[]> {
  if (customerId === null) return [];
  const { rows } = await db.raw<{ rows: Raw[] }>(
    `select o.id, o.order_number, o.created_at, o.total, o.currency, o.status, o.payment_method_id, o.card_brand,
            o.card_last_four, o.data
     from mirror.orders o
     where o.customer_id = ? and o.created_at < ? and o.deleted_at is null
       and o.status in ('succeeded', 'partially_refunded')
       -- Disputed once is disputed, however it ended.
       and not exists (select from mirror.versions v
                       where v.resource = 'order' and v.id = o.id and v.data->>'status' like 'chargeback%')
     order by o.created_at desc, o.id limit ?`,
    [customerId, before, mostRows.earlier + 1],
  );
  return rows.flatMap((row) => {
    const createdAt = time(row["created_at"]);
    if (createdAt === null) return [];
    return [
      {
        id: String(row["id"]),
        orderNumber: text(row["order_number"]),
        createdAt,
        totalMinor: minor(row["total"]),
        currency: text(row["currency"]),
        status: text(row["status"]),
        paymentMethodId: text(row["payment_method_id"]),
        cardBrand: text(row["card_brand"]),
        cardLastFour: text(row["card_last_four"]),
        address: addressIn(row["data"]),
      },
    ];
  });
}

/**
 * Joins consecutive states of one status into one, dated by the first. A status that comes again is a state of its own.
 */
async function readTimeline(
  db: Knex,
  orderId: string | null,
  transactionIds: readonly string[],
): Promise<DisputeState[]> {
  const { rows } = await db.raw<{
    rows: { at: Date; is_order: boolean; id: string; status: string | null; type: string | null }[];
  }>(
    `select s.at, s.is_order, s.id, s.status, s.type
     from (
       select v.source_updated_at as at, v.resource = 'order' as is_order, v.id, v.data->>'status' as status,
              v.data->>'type' as type, row_number() over states as place, lag(v.data->>'status') over states as former
       from mirror.versions v
       where (v.resource = 'order' and v.id = ?)
          or (v.resource in ('transaction', 'transaction.inline') and v.id = any(?::text[]))
       window states as (partition by v.resource = 'order', v.id
                         order by v.source_updated_at, reports.status_rank(v.data->>'status'), v.content_hash)
     ) s
     where s.place = 1 or s.status is distinct from s.former
     order by s.at, s.is_order, s.id, s.place limit ?`,
    [orderId, sqlArray(transactionIds), mostRows.timeline + 1],
  );
  return rows.map(({ at, is_order: isOrder, id, status, type }) => ({
    at,
    resource: isOrder ? "order" : "transaction",
    id,
    status,
    type,
  }));
}

const addressLines = [
  "first_name",
  "last_name",
  "full_name",
  "address_line1",
  "address_line2",
  "city",
  "state",
  "postal_code",
  "country",
  "phone",
];

function addressIn(data: unknown): Address | null {
  const address = isObject(data) ? data["shipping_address"] : null;
  if (!isObject(address)) return null;
  const lines = addressLines.flatMap((name) => {
    const line = text(address[name]);
    return line === null || line === "" ? [] : [[name, line] as const];
  });
  return lines.length === 0 ? null : Object.fromEntries(lines);
}

const isObject = (value: unknown): value is Raw => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
const time = (value: unknown): Date | null => (value instanceof Date ? value : null);
const minor = (value: unknown): bigint | null =>
  typeof value === "string" || typeof value === "number" ? BigInt(value) : null;
