import { decode, resourceOfType } from "../mirror/resources.ts";
import type { GroupState, ObjectKey, Resource, Snapshot } from "../mirror/snapshot.ts";
import { type EnvelopePaths, isDisputeType, parseEventBody, readEventParts } from "../contract/event-envelope.ts";
import { isChargebackStatus } from "../contract/resources/orders.ts";
import { type WireObject, wireId } from "../contract/wire-types.ts";

/** The work that an event requires. */
export type Interpretation =
  /** It contains an object. The objects in `alsoRead` changed with it and are not in the event. */
  | { kind: "state"; observation: Snapshot; alsoRead: ObjectKey[] }
  /** It names objects without containing them. */
  | { kind: "read"; objects: ObjectKey[] }
  /** A dispute without its order or transaction; `objects` are candidates for it. */
  | { kind: "dispute"; objects: ObjectKey[] }
  | { kind: "ignored"; reason: string }
  | { kind: "unreadable"; reason: string };

/**
 * Interprets an event's body (`parseEventBody`). Unknown content is never an error. A type that changes nothing here is
 * ignored. A chargeback is recognised by the state of the object, under any event name.
 */
export function interpretEvent(
  places: Readonly<EnvelopePaths>,
  { seq, body, receivedAt }: { seq: number; body: unknown; receivedAt?: string | null },
): Interpretation {
  if (body === undefined) return { kind: "unreadable", reason: "body: not JSON in UTF-8" };
  const { type, createdAt, object } = readEventParts(places, body);
  const family = resourceOfType(type);
  const isDispute = type !== null && isDisputeType(type);
  if (object === null) {
    if (isDispute) return { kind: "dispute", objects: [] };
    return family === undefined ? ignored(type) : { kind: "unreadable", reason: `${places.object}: no object` };
  }
  const meaning = isDispute ? meaningOfDispute(object, family) : meaningOf(object, family);
  if (meaning === undefined) return ignored(type);
  if ("kind" in meaning) return meaning;
  const { resource, alsoRead } = meaning;
  const cause = `event:${seq}`;
  const observation = {
    resource,
    object,
    fallbackUpdatedAt: createdAt,
    observedAt: null,
    ...(receivedAt === undefined ? {} : { receivedAt }),
    cause,
  };
  return { kind: "state", observation, alsoRead };
}

/** The object that an event names, whether or not the rest of it can be read; null: none by a valid id. */
export function objectNamedBy(interpretation: Interpretation): ObjectKey | null {
  switch (interpretation.kind) {
    case "state": {
      const { resource, object } = interpretation.observation;
      return named(resource, object["id"])[0] ?? null;
    }
    case "read":
    case "dispute":
      return interpretation.objects[0] ?? null;
    case "ignored":
    case "unreadable":
      return null;
  }
}

type Meaning =
  | { resource: Resource; alsoRead: ObjectKey[] }
  | Extract<Interpretation, { kind: "read" | "dispute" }>
  | undefined;

function meaningOf(object: WireObject, family: Resource | undefined): Meaning {
  const shape = shapeOf(object);
  if (family === undefined) {
    return shape !== undefined && isChargebackStatus(object["status"]) ? { resource: shape, alsoRead: [] } : undefined;
  }
  // The interface does not define the payload of every event: a charge may come as the order that it made.
  if (shape !== undefined && shape !== family) {
    const changed = family === "subscription" ? named("subscription", object["subscription_id"]) : [];
    return { resource: shape, alsoRead: changed };
  }
  // An object that belongs to a customer, such as a payment method, is not a customer, though it has an id and a time
  // as well.
  if (family === "customer" && Object.hasOwn(object, "customer_id")) {
    return { kind: "read", objects: named("customer", object["customer_id"]) };
  }
  return { resource: family, alsoRead: family === "order" ? changedByDecline(object) : [] };
}

/**
 * The subscription of a renewal that was declined: no event reports that it is past due, or that the last decline ended
 * it. A first charge has no cycle, and an event of its own. A decline without details shows the attempt without the
 * status.
 */
function changedByDecline({ status, attempt_count, subscription_cycle, ...order }: WireObject): ObjectKey[] {
  const isDeclined = status === "failed" || (status === undefined && typeof attempt_count === "number");
  const isRenewal = typeof subscription_cycle === "number";
  return isDeclined && isRenewal ? named("subscription", order["subscription_id"]) : [];
}

/** Keeps a dispute's own object (such as an id and a reason) from being taken for an object of the family. */
function meaningOfDispute(object: WireObject, family: Resource | undefined): Meaning {
  const shape = shapeOf(object) ?? (isChargebackStatus(object["status"]) ? family : undefined);
  if (shape !== undefined) return { resource: shape, alsoRead: [] };
  const objects = [
    ...named("order", object["order_id"]),
    ...named("transaction", object["transaction_id"]),
    ...(family === undefined ? [] : named(family, object["id"])),
  ];
  return { kind: "dispute", objects };
}

const named = (resource: Resource, id: unknown): ObjectKey[] => {
  const read = wireId.safeParse(id);
  return read.success ? [{ resource, id: read.data }] : [];
};

/** Recognises an order or a transaction by the keys that only it has. */
function shapeOf(object: WireObject): Resource | undefined {
  if (Object.hasOwn(object, "order_number") && Object.hasOwn(object, "total")) return "order";
  const isTransaction =
    typeof object["type"] === "string" &&
    Object.hasOwn(object, "amount") &&
    Object.hasOwn(object, "order_id") &&
    Object.hasOwn(object, "status");
  return isTransaction ? "transaction" : undefined;
}

const ignored = (type: string | null): Interpretation => ({
  kind: "ignored",
  reason: `type ${type === null ? "(none)" : JSON.stringify(type.slice(0, 80))} changes nothing here`,
});

/**
 * The states that a worker reads in an event's stored bytes; empty if there are none. Only states with a history: items
 * have none.
 */
export function statesOfEvent(
  places: Readonly<EnvelopePaths>,
  { seq, raw }: { seq: number; raw: Buffer },
): GroupState[] {
  const interpretation = interpretEvent(places, { seq, body: parseEventBody(raw) });
  if (interpretation.kind !== "state") return [];
  const decoded = decode(interpretation.observation);
  return "states" in decoded ? decoded.states : [];
}
