import type { Knex } from "knex";
import type { EnvelopePaths } from "../contract/event-envelope.ts";
import type { LockedEvent } from "../inbox/locked-events.ts";
import type { GroupState } from "../mirror/snapshot.ts";
import { findLocked } from "../mirror/write/locked-rows.ts";
import { describeBlockers } from "../../platform/postgres/lock-waits.ts";
import { statesOfEvent } from "./interpret-event.ts";

/** The number of bodies read together: each may have a megabyte. */
const atOnce = 25;

/** Empty when the event cannot be read: its fault must not keep others from being deferred. */
function statesShown(...event: Parameters<typeof statesOfEvent>): GroupState[] {
  try {
    return statesOfEvent(...event);
  } catch {
    return [];
  }
}

/** Finds the events whose rows other transactions keep locked, and the holders. Waits for none of them. */
export async function findLockedEvents(
  { db, places }: { db: Knex; places: Readonly<EnvelopePaths> },
  seqs: readonly number[],
): Promise<LockedEvent[]> {
  const found: LockedEvent[] = [];
  for (let from = 0; from < seqs.length; from += atOnce) {
    const stored = await db("inbox.receipts")
      .whereIn("seq", seqs.slice(from, from + atOnce))
      .whereNotNull("raw")
      .select<{ seq: string; raw: Buffer }[]>("seq", "raw");
    const events = stored.map(({ seq, raw }) => {
      const event = { seq: Number(seq), raw };
      return { seq: event.seq, states: statesShown(places, event) };
    });
    const locked = await findLocked(
      db,
      events.flatMap(({ states }) => states),
    );
    for (const { seq, states } of events) {
      const state = states.find((each) => locked.has(each));
      if (state === undefined) continue;
      const holder = locked.get(state) ?? null;
      found.push({ seq, holder: holder === null ? null : describeBlockers([holder]) });
    }
  }
  return found;
}
