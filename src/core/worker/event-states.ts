import { type EnvelopePaths, parseEventBody } from "../contract/event-envelope.ts";
import { decode } from "../mirror/resources.ts";
import type { GroupState } from "../mirror/snapshot.ts";
import { interpretEvent } from "./interpret-event.ts";

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
