import type { Resource } from "../mirror/observation.ts";

/** The table in schema `mirror` in which a resource lies. */
export const mirrorTableOf = {
  order: "orders",
  transaction: "transactions",
  subscription: "subscriptions",
  customer: "customers",
} as const satisfies Record<Resource, string>;
