import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { type WireObject, mirrorState } from "./sandbox-history.ts";

export interface Sale {
  at: string;
  /** Minor units. */
  amount: number;
  currency?: string;
  /** The order's number; sales of one number are states of one order. */
  nth?: number;
  status?: string;
  saleStatus?: string;
  updatedAt?: string;
  refunds?: readonly { at: string; amount: number; status?: string; updatedAt?: string }[];
  customer?: string;
}

const idOf = (text: string): string => {
  const hex = createHash("md5").update(text).digest("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
};

/** Brings the mirror up to these orders and their transactions, as a read of the service would. */
export async function mirrorSales(db: Knex, sales: readonly Sale[]): Promise<void> {
  const made = sales.map((sale, n) => objectsOf(sale, sale.nth ?? n));
  const seenAt = sales.map((sale) => sale.updatedAt ?? sale.at).reduce((a, b) => (a > b ? a : b));
  await mirrorState(
    db,
    {
      orders: made.map(({ order }) => order),
      transactions: made.flatMap(({ transactions }) => transactions),
      subscriptions: [],
      customers: [],
    },
    seenAt,
  );
}

function objectsOf(sale: Sale, nth: number): { order: WireObject; transactions: WireObject[] } {
  const { at, amount, currency = "usd", status = "succeeded", refunds = [] } = sale;
  const updated_at = sale.updatedAt ?? at;
  const id = idOf(`order ${nth}`);
  const shared = {
    customer_id: sale.customer ?? idOf("customer"),
    currency,
    payment_method: { id: idOf("card"), card_last_four: "1111", card_brand: "visa" },
    metadata: {},
  };
  const order = {
    ...shared,
    id,
    order_number: `N${String(nth).padStart(7, "0")}`,
    status,
    subtotal: amount,
    discount_amount: 0,
    total: amount,
    created_at: at,
    updated_at,
  };
  const transaction = (name: string, own: WireObject) => ({
    ...shared,
    id: idOf(`${name} ${nth}`),
    order_id: id,
    processor_response: null,
    failure_reason: null,
    ...own,
  });
  const saleStatus = sale.saleStatus ?? "succeeded";
  return {
    order,
    transactions: [
      transaction("sale", { type: "sale", status: saleStatus, amount, created_at: at, updated_at }),
      ...refunds.map((refund, n) =>
        transaction(`refund ${n}`, {
          type: "refund",
          status: refund.status ?? "succeeded",
          amount: refund.amount,
          created_at: refund.at,
          updated_at: refund.updatedAt ?? refund.at,
        }),
      ),
    ],
  };
}
