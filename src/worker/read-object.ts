import type { ObjectKey, Observation, Resource } from "../mirror/observation.ts";
import { observed, readPlaces } from "../mirror/read-places.ts";
import type { ServiceClient } from "../service/client.ts";
import { objectPath } from "../service/http/request-path.ts";
import { wireId } from "../service/resources/wire-types.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { disputedTransactions } from "./conclusions.ts";

/** One answer of the service. */
export interface ReadPage {
  observations: Observation[];
  /** Told of and not shown: to be read apart. */
  unread: ObjectKey[];
  date: Date;
}

export type ReadResult =
  | { kind: "found"; pages: AsyncIterable<ReadPage> | Iterable<ReadPage> }
  | { kind: "missing"; date: Date }
  /** An answer that does not show the object that was asked for. */
  | { kind: "unreadable"; date: Date };

type WireObject = Readonly<Record<string, unknown>>;
type Reader = { client: Pick<ServiceClient, "get" | "listPages">; cause: string };

/** One slow object must not hold up the others for long. */
const deadlineMs = 20_000;

/**
 * Reads one wanted object, or all charged-back transactions page by page. No transaction may be open: this waits
 * for the service. Throws the client's `ServiceError`.
 */
export async function readObject(
  { client, cause }: Reader,
  { resource, id }: { resource: string; id: string },
): Promise<ReadResult> {
  if (resource === disputedTransactions.resource) {
    return { kind: "found", pages: disputePages({ client, cause }) };
  }
  if (!isResource(resource)) throw new TypeError(`no way to read a ${resource}`);
  const place = readPlaces[resource];
  const { status, body, date } = await client.get(
    objectPath(place.path, id),
    place.expand === undefined ? {} : { expand: place.expand },
    { deadlineMs },
  );
  if (status === 404) return { kind: "missing", date };
  const object = asObject(body);
  if (object?.["id"] !== id) return { kind: "unreadable", date };
  const observations = [observed(resource, object, fixedForm(date), cause)];
  return { kind: "found", pages: [{ observations, unread: [], date }] };
}

/** The list is walked with the orders embedded; an order that is not there all the same is read by its id. */
async function* disputePages({ client, cause }: Reader): AsyncGenerator<ReadPage, void, undefined> {
  const query = { status: "chargeback", expand: "order" };
  for await (const { items, date } of client.listPages("/transactions", query, { lane: "fetch" })) {
    const page: ReadPage = { observations: [], unread: [], date };
    const observedAt = fixedForm(date);
    for (const transaction of items) {
      page.observations.push(observed("transaction", transaction, observedAt, cause));
      const order = asObject(transaction["order"]);
      const orderId = wireId.safeParse(transaction["order_id"]);
      if (order !== undefined) page.observations.push(observed("order", order, observedAt, cause));
      else if (orderId.success) page.unread.push({ resource: "order", id: orderId.data });
    }
    yield page;
  }
}

const isResource = (resource: string): resource is Resource => Object.hasOwn(readPlaces, resource);

const asObject = (value: unknown): WireObject | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as WireObject)
    : undefined;

const fixedForm = (date: Date): string | null => canonicalTimestamp(date.toISOString());
