import type { Resource } from "./observation.ts";

/** Where an object is read by its id, and what must be embedded so that the answer is whole. */
export const readPlaces: Readonly<Record<Resource, { path: `/${string}`; expand?: string }>> = {
  order: { path: "/orders", expand: "transactions" },
  transaction: { path: "/transactions" },
  subscription: { path: "/subscriptions" },
  customer: { path: "/customers" },
};
