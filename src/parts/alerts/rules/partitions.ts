import type { Knex } from "knex";
import type { Begun } from "../condition.ts";
import { watch } from "../watch.ts";
import { headlineText } from "./wording.ts";

/** Whether the inbox or the feed has partitions for what comes next. */
interface Partitions {
  /** Partitions of numbers after the present one. */
  spansAhead: number;
  /** The next row has none, and will be stored in the default partition. */
  isOverflowing: boolean;
  /** The inbox only: weeks of the memory against repeats after this one. */
  weeksAhead?: number;
}

/** Questions that the sweep asks the inbox and the feed. */
interface PartitionQuestions {
  partitionsAt(db: Knex, now: Date): Promise<Partitions>;
  feedPartitions(db: Knex): Promise<Partitions>;
}

/** The inbox or the feed runs out of partitions, or has. */
export const inboxPartitions = watch({
  rule: "inbox_partitions",
  about: "The inbox or the feed has no partition ready for what comes next, or rows lie outside of all.",
  severity: "error",
  settings: {},
  // A worker makes partitions once an hour, so a missing one may still come within an hour of its start.
  graceMs: 70 * 60_000,
  read: async (db, { at }, { partitionsAt, feedPartitions }: PartitionQuestions) => ({
    inbox: await partitionsAt(db, at),
    feed: await feedPartitions(db),
  }),
  begins: (partitions) =>
    (["inbox", "feed"] as const)
      .filter((name) => !areReady(partitions[name]))
      .map((name) => unready(name, partitions[name])),
  end: (key) => {
    const name = key.startsWith("inbox:") ? "inbox" : "feed";
    return {
      title: `The ${name}'s partitions are ready again`,
      advice:
        `No ${name === "inbox" ? "event" : "change"} lies outside of them, and the next ones are made. Nothing is ` +
        "left to do.",
    };
  },
  samples: () => {
    const ready = { spansAhead: 2, isOverflowing: false };
    const inbox = { spansAhead: 0, weeksAhead: 4 };
    return {
      "no partition ready": { inbox: { ...inbox, isOverflowing: false }, feed: ready },
      "events outside the partitions": { inbox: { ...inbox, isOverflowing: true }, feed: ready },
      "no partition ready in the feed": { inbox: ready, feed: { spansAhead: 0, isOverflowing: false } },
    };
  },
});

const areReady = ({ spansAhead, weeksAhead = 1, isOverflowing }: Partitions): boolean =>
  spansAhead > 0 && weeksAhead > 0 && !isOverflowing;

const words = {
  inbox: { rows: "Events", comesNext: "arrives next", effect: "Events are still stored and applied" },
  feed: { rows: "Changes", comesNext: "changes next", effect: "Changes are still written and read" },
} as const;

function unready(name: keyof typeof words, { spansAhead, weeksAhead, isOverflowing }: Partitions): Begun {
  const { rows, comesNext, effect } = words[name];
  return {
    key: `${name}:partitions`,
    title: headlineText({
      lead: isOverflowing
        ? `${rows} lie outside the ${name}'s partitions`
        : `The ${name} has no partition ready for what ${comesNext}`,
      next: "Nothing is lost yet",
    }),
    advice:
      `${effect}, but where partitions are missing they are removed one by one when they are old, and the ${name} ` +
      'becomes slower. A worker makes partitions every hour and did not: search its log for "partitions are ' +
      `changed later" and "${name}-partitions". Often another session holds a lock on the tables of the ${name} (a ` +
      "backup, an open transaction), or the role of DATABASE_URL may not change them. This alert ends by itself.",
    facts: [
      { label: "Partitions ahead", value: String(spansAhead) },
      ...(weeksAhead === undefined ? [] : [{ label: "Weeks ahead", value: String(weeksAhead) }]),
      { label: `${rows} outside`, value: isOverflowing ? "yes" : "no" },
    ],
    storedFacts: { spansAhead, ...(weeksAhead === undefined ? {} : { weeksAhead }), isOverflowing },
  };
}
