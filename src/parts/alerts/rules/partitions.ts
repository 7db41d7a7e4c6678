import type { Knex } from "knex";
import type { AlertContext } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import type { Condition, End } from "../timeline.ts";
import { watchedSince } from "./watch-absence.ts";
import { headlineText } from "./wording.ts";

/** Whether a room has partitions for what comes next. */
export interface Partitions {
  /** Partitions of numbers after the present one. */
  spansAhead: number;
  /** The next row has none, and will lie in the one for all such rows. */
  isOverflowing: boolean;
  /** Of the inbox: weeks of the memory against repeats after this one. */
  weeksAhead?: number;
}

export type PartitionedRoom = "inbox" | "feed";

/** What is asked of the rooms. */
export interface PartitionQuestions {
  partitionsAt(db: Knex, now: Date): Promise<Partitions>;
  feedPartitions(db: Knex): Promise<Partitions>;
}

/** A worker makes partitions once an hour, so what is missing may still come within an hour of its start. */
const graceMs = 70 * 60_000;

/** Reports that the inbox or the feed runs out of partitions. Needs a transaction; idempotent. */
export async function watchPartitions(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { partitionsAt, feedPartitions }: PartitionQuestions,
): Promise<void> {
  const at = alertContext.clock.now();
  const rooms = { inbox: await partitionsAt(trx, at), feed: await feedPartitions(trx) };
  const since = await watchedSince(trx);
  for (const room of ["inbox", "feed"] as const) {
    if (areReady(rooms[room])) {
      const ended = { key: partitionsKey(room), end: partitionsEnd(room), at };
      await clear(trx, alertContext, [ended], "sweep");
    } else if (since !== null && at.getTime() - since.getTime() >= graceMs) {
      const condition = partitionsCondition(alertContext.settings.rules, room, rooms[room], at);
      await raise(trx, alertContext, [condition], "sweep");
    }
  }
}

const partitionsKey = (room: PartitionedRoom): string => `${room}:partitions`;

const areReady = ({ spansAhead, weeksAhead = 1, isOverflowing }: Partitions): boolean =>
  spansAhead > 0 && weeksAhead > 0 && !isOverflowing;

const words = {
  inbox: {
    rows: "Events",
    comesNext: "arrives next",
    effect: "Events are stored and applied all the same",
  },
  feed: {
    rows: "Changes",
    comesNext: "changes next",
    effect: "Changes are told and read all the same",
  },
} as const;

/** A room runs out of partitions, or has. */
export function partitionsCondition(
  { inbox_partitions: rule }: AlertSettings["rules"],
  room: PartitionedRoom,
  { spansAhead, weeksAhead, isOverflowing }: Partitions,
  at: Date,
): Condition {
  const { rows, comesNext, effect } = words[room];
  return {
    key: partitionsKey(room),
    rule: "inbox_partitions",
    severity: rule.severity,
    title: headlineText({
      lead: isOverflowing
        ? `${rows} lie outside the ${room}'s partitions`
        : `The ${room} has no partition ready for what ${comesNext}`,
      next: "Nothing is lost yet",
    }),
    advice:
      `${effect}, but where partitions are missing they are removed one by one when they are old, and the ${room} ` +
      "becomes slower. A worker makes partitions every hour and did not: search its log for " +
      `"partitions are changed later" and "${room}-partitions". Often somebody holds a lock on the tables of the ` +
      `${room} (a backup, an open transaction), or the role of DATABASE_URL may not change them. This alert ends by ` +
      "itself.",
    facts: [
      { label: "Partitions ahead", value: String(spansAhead) },
      ...(weeksAhead === undefined ? [] : [{ label: "Weeks ahead", value: String(weeksAhead) }]),
      { label: `${rows} outside`, value: isOverflowing ? "yes" : "no" },
    ],
    storedFacts: {
      spansAhead,
      ...(weeksAhead === undefined ? {} : { weeksAhead }),
      isOverflowing,
    },
    at,
  };
}

export const partitionsEnd = (room: PartitionedRoom): End => ({
  title: `The ${room}'s partitions are ready again`,
  advice: `No ${room === "inbox" ? "event" : "change"} lies outside of them, and the next ones are made. Nothing is left to do.`,
});
