import type { Observation, Resource } from "../mirror/observation.ts";
import type { ServiceClient } from "../service/client.ts";
import { objectPath } from "../service/http/request-path.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { disputedTransactions } from "./apply-batch.ts";

/** What a read of the service showed. */
export type ReadResult =
  | { kind: "found"; observations: Observation[]; date: Date }
  | { kind: "missing"; date: Date };

type WireObject = Readonly<Record<string, unknown>>;

/** Where an object is read, and what must be embedded so that the answer is whole. */
const places: Readonly<Record<string, { path: `/${string}`; resource: Resource; expand?: string }>> = {
  order: { path: "/orders", resource: "order", expand: "transactions" },
  transaction: { path: "/transactions", resource: "transaction" },
  subscription: { path: "/subscriptions", resource: "subscription" },
  customer: { path: "/customers", resource: "customer" },
};

/**
 * Reads one wanted object, or all charged-back transactions. No transaction may be open: this waits for the
 * service. Throws the client's `ServiceError`.
 */
export async function readObject(
  { client, cause }: { client: Pick<ServiceClient, "get" | "listPages">; cause: string },
  { resource, id }: { resource: string; id: string },
): Promise<ReadResult> {
  if (resource === disputedTransactions.resource) return readDisputes({ client, cause });
  const place = places[resource];
  if (place === undefined) throw new Error(`no way to read a ${resource}`);
  const answer = await client.get(
    objectPath(place.path, id),
    place.expand === undefined ? {} : { expand: place.expand },
  );
  if (answer.status === 404) return { kind: "missing", date: answer.date };
  const object = asObject(answer.body);
  const observations =
    object === undefined ? [] : [observed(place.resource, object, answer.date, cause)];
  return { kind: "found", observations, date: answer.date };
}

async function readDisputes({
  client,
  cause,
}: {
  client: Pick<ServiceClient, "listPages">;
  cause: string;
}): Promise<ReadResult> {
  const observations: Observation[] = [];
  let date = new Date(0);
  const query = { status: "chargeback", expand: "order" };
  for await (const page of client.listPages("/transactions", query, { lane: "fetch" })) {
    date = page.date;
    for (const transaction of page.items) {
      observations.push(observed("transaction", transaction, page.date, cause));
      const order = asObject(transaction["order"]);
      if (order !== undefined) observations.push(observed("order", order, page.date, cause));
    }
  }
  return { kind: "found", observations, date };
}

/** A state as the service's answer dates it. */
export function observed(
  resource: Resource,
  object: WireObject,
  date: Date,
  cause: string,
): Observation {
  const observedAt = canonicalTimestamp(date.toISOString());
  return { resource, object, fallbackUpdatedAt: null, observedAt, cause };
}

const asObject = (value: unknown): WireObject | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as WireObject)
    : undefined;
