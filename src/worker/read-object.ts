import { observed } from "../mirror/observation.ts";
import type { Resource } from "../mirror/observation.ts";
import { readPlaces } from "../mirror/read-places.ts";
import type { ServiceClient } from "../service/client.ts";
import { isObjectId, objectPath } from "../service/http/request-path.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import type { ReadPage } from "./apply-answer.ts";

export type ReadResult =
  | { kind: "found"; page: ReadPage }
  | { kind: "missing"; date: Date }
  /** An answer that does not show the object that was asked for, or an id by which none can be asked for. */
  | { kind: "unreadable" };

type WireObject = Readonly<Record<string, unknown>>;
type Reader = { client: Pick<ServiceClient, "get">; cause: string };

/** One slow object must not hold up the others for long. */
const deadlineMs = 20_000;

/** Reads one wanted object. No transaction may be open: this waits for the service. Throws the client's `ServiceError`. */
export async function readObject(
  { client, cause }: Reader,
  { resource, id }: { resource: string; id: string },
): Promise<ReadResult> {
  if (!isResource(resource)) throw new TypeError(`no way to read a ${resource}`);
  if (!isObjectId(id)) return { kind: "unreadable" };
  const place = readPlaces[resource];
  const { status, body, date } = await client.get(
    objectPath(place.path, id),
    place.expand === undefined ? {} : { expand: place.expand },
    { deadlineMs },
  );
  if (status === 404) return { kind: "missing", date };
  const object = asObject(body);
  if (object?.["id"] !== id) return { kind: "unreadable" };
  const observations = [observed(resource, object, fixedForm(date), cause)];
  return { kind: "found", page: { observations, unread: [], date } };
}

const isResource = (resource: string): resource is Resource => Object.hasOwn(readPlaces, resource);

export const asObject = (value: unknown): WireObject | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as WireObject)
    : undefined;

/** A `Date` of the service's as versions have it. */
export const fixedForm = (date: Date): string | null => canonicalTimestamp(date.toISOString());
