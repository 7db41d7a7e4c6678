import { canonicalTimestamp } from "../service/timestamp.ts";
import type { Observation, Resource } from "./observation.ts";

/** Where an object is read by its id, and what must be embedded so that the answer is whole. */
export const readPlaces: Readonly<Record<Resource, { path: `/${string}`; expand?: string }>> = {
  order: { path: "/orders", expand: "transactions" },
  transaction: { path: "/transactions" },
  subscription: { path: "/subscriptions" },
  customer: { path: "/customers" },
};

/** A state as the service's answer of this `Date` shows it. */
export function observed(
  resource: Resource,
  object: Observation["object"],
  date: Date,
  cause: string,
): Observation {
  const observedAt = canonicalTimestamp(date.toISOString());
  return { resource, object, fallbackUpdatedAt: null, observedAt, cause };
}
