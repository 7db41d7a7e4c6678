import type { Mode } from "../mode.ts";
import { notFound, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import type { Table } from "../store/table.ts";

type TableName = {
  [K in keyof Space]: Space[K] extends Table<infer _> ? K : never;
}[keyof Space];

type RecordOf<N extends TableName> = NonNullable<ReturnType<Space[N]["get"]>>;

const nouns: Readonly<Record<TableName, string>> = {
  customers: "customer",
  paymentMethods: "payment method",
  products: "product",
  plans: "plan",
  orders: "order",
  subscriptions: "subscription",
  transactions: "transaction",
  coupons: "coupon",
  couponCodes: "coupon code",
  redemptions: "redemption",
  roles: "role",
  teamMembers: "team member",
  outbox: "message",
  webhookEndpoints: "webhook endpoint",
};

/**
 * The record with an id, or a refusal: 404, and 403 `environment_mismatch` for an object of the other environment
 * (statement 30). `param` is the field that named it, where that was in the body.
 */
export function find<N extends TableName>(
  state: Pick<State, "merchants">,
  space: Space,
  table: N,
  id: string,
  param: string | null = null,
): RecordOf<N> {
  const record = space[table].get(id);
  if (record !== undefined) return record as RecordOf<N>;
  const otherMode: Mode = space.mode === "test" ? "live" : "test";
  const twin = state.merchants.get(space.merchant)?.spaces[otherMode];
  if (twin?.[table].get(id) === undefined) throw notFound(nouns[table], param);
  throw new Refusal(
    "environment_mismatch",
    `The ${nouns[table]} belongs to the other environment.`,
    param,
  );
}
