import { type EnvelopePaths, parseEventBody } from "../contract/event-envelope.ts";
import { decode } from "../mirror/resources.ts";
import type { GroupState } from "../mirror/snapshot.ts";
import { interpretEvent } from "./interpret-event.ts";

/**
 * The states that the stored bytes of an event show, as a worker reads them; none where they show none. Of a state in
 * the history only: items have no history.
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
