import type { Observation, Resource } from "./observation.ts";

/** Where an object is read by its id, and what must be embedded so that the answer is whole. */
export const readPlaces: Readonly<Record<Resource, { path: `/${string}`; expand?: string }>> = {
  order: { path: "/orders", expand: "transactions" },
  transaction: { path: "/transactions" },
  subscription: { path: "/subscriptions" },
  customer: { path: "/customers" },
};

/** A state as an answer shows it that bears this `Date` of the service's, in the fixed form. */
export const observed = (
  resource: Resource,
  object: Observation["object"],
  observedAt: string | null,
  cause: string,
): Observation => ({
  resource,
  object,
  fallbackUpdatedAt: null,
  observedAt,
  receivedAt: observedAt,
  cause,
});
