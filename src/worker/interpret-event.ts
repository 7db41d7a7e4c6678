import { parseEventBody, readEventParts } from "../service/event-envelope.ts";
import type { EnvelopePlaces } from "../service/event-envelope.ts";
import type { Observation, Resource } from "../mirror/observation.ts";

/** What an event asks for. */
export type Interpretation =
  | { kind: "state"; observation: Observation }
  /** A dispute that does not show the order or transaction it is about. */
  | { kind: "dispute" }
  | { kind: "ignored"; reason: string }
  | { kind: "unreadable"; reason: string };

const resourceOfFamily: Readonly<Record<string, Resource>> = {
  order: "order",
  subscription: "subscription",
  customer: "customer",
  transaction: "transaction",
};

/** The name of the chargeback event is not shown (spec, Events): any of these may be one. */
const disputeType = /chargeback|dispute/i;

type WireObject = Readonly<Record<string, unknown>>;

/**
 * Decides what an event's bytes say. What is not known is never an error: a type that changes nothing here is
 * ignored, and a chargeback is found by the state of the object, whatever the event is called. Pure.
 */
export function interpretEvent(
  places: Readonly<EnvelopePlaces>,
  event: { seq: number; raw: Buffer },
): Interpretation {
  const body = parseEventBody(event.raw);
  if (body === undefined) return { kind: "unreadable", reason: "body: not JSON in UTF-8" };
  const { type, createdAt, object } = readEventParts(places, body);
  const isDispute = type !== null && disputeType.test(type);
  if (object === null) {
    if (isDispute) return { kind: "dispute" };
    const family = familyOf(type);
    return family === undefined
      ? { kind: "ignored", reason: `type ${describe(type)} changes nothing here` }
      : { kind: "unreadable", reason: `${places.object}: no object` };
  }
  const resource = resourceOf(type, object, isDispute);
  if (resource === undefined) {
    return isDispute
      ? { kind: "dispute" }
      : { kind: "ignored", reason: `type ${describe(type)} changes nothing here` };
  }
  return {
    kind: "state",
    observation: {
      resource,
      object,
      fallbackUpdatedAt: createdAt,
      observedAt: null,
      cause: `event:${event.seq}`,
    },
  };
}

function resourceOf(type: string | null, object: WireObject, isDispute: boolean): Resource | undefined {
  const shape = shapeOf(object);
  const showsChargeback = String(object["status"]).startsWith("chargeback");
  const family = familyOf(type);
  // A dispute's own object (an id and a reason, say) must not be taken for the family's.
  if (isDispute) return shape ?? (showsChargeback ? family : undefined);
  return family ?? (showsChargeback ? shape : undefined);
}

const familyOf = (type: string | null): Resource | undefined => {
  const family = type?.split(".", 1)[0] ?? "";
  return Object.hasOwn(resourceOfFamily, family) ? resourceOfFamily[family] : undefined;
};

/** Tells an order and a transaction by the keys that only they have. */
function shapeOf(object: WireObject): Resource | undefined {
  if (Object.hasOwn(object, "order_number") && Object.hasOwn(object, "total")) return "order";
  const isTransaction =
    typeof object["type"] === "string" &&
    Object.hasOwn(object, "amount") &&
    Object.hasOwn(object, "order_id") &&
    Object.hasOwn(object, "status");
  return isTransaction ? "transaction" : undefined;
}

const describe = (type: string | null): string =>
  type === null ? "(none)" : JSON.stringify(type.slice(0, 80));
