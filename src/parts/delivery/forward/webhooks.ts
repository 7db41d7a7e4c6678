import type { Source } from "../dispatch/recipient.ts";
import type { ClaimedRun } from "../dispatch/runs.ts";
import { type ReadEvent, eventPositionAt, readTried, triedUntil } from "../../../core/inbox/read-by-number.ts";
import { headerKeyOf } from "../../../platform/http/header-value.ts";
import type { Delivery } from "./destination.ts";

/** A run's copy of an event; its bytes are read when they are sent. */
interface EventItem {
  eventId: string;
  receivedAt: string;
}

/** The webhooks of the inbox, of some types; null: of all. An event without an object is one by itself. */
export const webhookSource = (types: readonly string[] | null): Source => ({
  name: "webhooks",
  readableUntil: triedUntil,
  positionAt: eventPositionAt,
  async read(db, { after, limit, startsAt }) {
    const { events, ...page } = await readTried(db, { after, limit });
    const rows = events
      .filter(({ type }) => types === null || (type !== null && types.includes(type)))
      .filter(({ receivedAt }) => startsAt === null || receivedAt >= startsAt)
      .map(({ seq, eventId, type, receivedAt, object }) => ({
        seq,
        resource: object?.type ?? "event",
        id: object?.id ?? String(seq),
        kind: type ?? "-",
        item: eventItem({ eventId, receivedAt }),
      }));
    return { rows, ...page };
  },
});

export const eventItem = ({ eventId, receivedAt }: Pick<ReadEvent, "eventId" | "receivedAt">): EventItem => ({
  eventId,
  receivedAt: receivedAt.toISOString(),
});

/** Sends the bytes as the inbox stores them. */
export function webhookDelivery({ item }: Pick<ClaimedRun, "item">, body: Buffer): Delivery {
  const { eventId, receivedAt } = item as EventItem;
  return {
    id: headerKeyOf(eventId),
    body,
    headers: {
      "tallyhook-event-id": encodeURIComponent(eventId.toWellFormed()),
      "tallyhook-received-at": receivedAt,
    },
  };
}
