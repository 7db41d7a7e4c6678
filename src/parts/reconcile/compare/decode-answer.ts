import { readTime } from "../../../core/mirror/resources/resource.ts";
import { storable } from "../../../platform/postgres/values.ts";
import { type GroupState, type ObjectKey, type Resource, snapshotFrom } from "../../../core/mirror/snapshot.ts";
import { decode } from "../../../core/mirror/resources.ts";
import { type WireObject, asObject, wireId } from "../../../core/contract/wire-types.ts";
import { boundText } from "../coverage/slice.ts";

export interface UnreadableObject {
  resource: Resource;
  id: string;
  reason: string;
  /** Fixed form; null where that is unreadable too. */
  createdAt: string | null;
}

export interface DecodedAnswer {
  /** The service's `Date`, fixed form. */
  observedAt: string;
  states: GroupState[];
  /** Every object shown, embedded ones included. */
  objects: ObjectKey[];
  /** Mentioned without a complete state: to be read by id. */
  unread: (ObjectKey & { why: "not_embedded" | "thin" })[];
  /** Shown, but its id, version or money cannot be read. */
  unreadable: UnreadableObject[];
  /** States dated later than the answer; their objects are also in `unreadable`. */
  unbelieved: GroupState[];
}

/** Decodes an answer's objects of one resource, and the orders embedded in its transactions. */
export function decodeAnswer(
  {
    resource,
    date,
    cause,
    expectsOrder,
  }: {
    resource: Resource;
    date: Date;
    cause: string;
    /** The request had `expand=order`: an order that is not embedded is read by its id. */
    expectsOrder: boolean;
  },
  items: readonly WireObject[],
): DecodedAnswer {
  const look: DecodedAnswer = {
    observedAt: boundText(date),
    states: [],
    objects: [],
    unread: [],
    unreadable: [],
    unbelieved: [],
  };
  const add = (of: Resource, object: WireObject) => {
    const decoded = decode(snapshotFrom(of, object, look.observedAt, cause));
    if (decoded.ok) {
      look.objects.push({ resource: of, id: decoded.id });
      let unbelieved: GroupState | null = null;
      for (const state of decoded.states) {
        (state.isBelieved ? look.states : look.unbelieved).push(state);
        if (!state.isBelieved) unbelieved ??= state;
      }
      if (unbelieved !== null) {
        const reason = `dated ${unbelieved.changedAt}, more than an hour after the service's answer: not believed`;
        const createdAt = readTime(object, "created_at");
        look.unreadable.push({ resource: of, id: decoded.id, reason, createdAt });
      }
      for (const key of decoded.unread) look.unread.push({ ...key, why: "thin" });
    } else if (decoded.partial) {
      look.unread.push({ resource: of, id: decoded.id, why: "thin" });
    } else {
      const id = typeof object["id"] === "string" ? storable(object["id"]).slice(0, 255) : "(none)";
      look.unreadable.push({
        resource: of,
        id,
        reason: decoded.reason,
        createdAt: readTime(object, "created_at"),
      });
    }
  };
  for (const item of items) {
    add(resource, item);
    if (!expectsOrder) continue;
    const orderId = wireId.safeParse(item["order_id"]);
    const order = asObject(item["order"]);
    if (order !== undefined) add("order", order);
    else if (orderId.success) {
      look.unread.push({ resource: "order", id: orderId.data, why: "not_embedded" });
    }
  }
  return look;
}
