import type { Knex } from "knex";
import type { AlertContext } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import type { Condition, End } from "../timeline.ts";
import { watchedSince } from "./watch-absence.ts";
import { headlineText } from "./wording.ts";

/** Whether the inbox has partitions for what arrives next. */
export interface Partitions {
  /** Partitions of numbers after the present one. */
  spansAhead: number;
  /** Weeks of the memory against repeats after this one. */
  weeksAhead: number;
  /** The next event has none, and will lie in the one for all such events. */
  isOverflowing: boolean;
}

/** What is asked of the inbox. */
export interface PartitionQuestions {
  partitionsAt(db: Knex, now: Date): Promise<Partitions>;
}

const partitionsKey = "inbox:partitions";

/** A worker makes partitions once an hour, so what is missing may still come within an hour of its start. */
const graceMs = 70 * 60_000;

/** Reports that the inbox runs out of partitions. Needs a transaction; idempotent. */
export async function watchPartitions(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { partitionsAt }: PartitionQuestions,
): Promise<void> {
  const at = alertContext.clock.now();
  const partitions = await partitionsAt(trx, at);
  if (areReady(partitions)) {
    await clear(trx, alertContext, [{ key: partitionsKey, end: partitionsEnd, at }], "sweep");
    return;
  }
  const since = await watchedSince(trx);
  if (since === null || at.getTime() - since.getTime() < graceMs) return;
  const condition = partitionsCondition(alertContext.settings.rules, partitions, at);
  await raise(trx, alertContext, [condition], "sweep");
}

const areReady = ({ spansAhead, weeksAhead, isOverflowing }: Partitions): boolean =>
  spansAhead > 0 && weeksAhead > 0 && !isOverflowing;

/** The inbox runs out of partitions, or has. Pure. */
export function partitionsCondition(
  { inbox_partitions: rule }: AlertSettings["rules"],
  { spansAhead, weeksAhead, isOverflowing }: Partitions,
  at: Date,
): Condition {
  return {
    key: partitionsKey,
    rule: "inbox_partitions",
    severity: rule.severity,
    title: headlineText({
      lead: isOverflowing
        ? "Events lie outside the inbox's partitions"
        : "The inbox has no partition ready for what arrives next",
      next: "Nothing is lost yet",
    }),
    advice:
      "Events are stored and applied all the same, but where partitions are missing they are removed one by one when " +
      "they are old, and the inbox becomes slower. A worker makes partitions every hour and did not: search its log for " +
      '"partitions of the inbox" and "inbox-partitions". Often somebody holds a lock on the tables of the inbox (a ' +
      "backup, an open transaction), or the role of DATABASE_URL may not create tables. This alert ends by itself.",
    facts: [
      { label: "Partitions ahead", value: String(spansAhead) },
      { label: "Weeks ahead", value: String(weeksAhead) },
      { label: "Events outside", value: isOverflowing ? "yes" : "no" },
    ],
    storedFacts: { spansAhead, weeksAhead, isOverflowing },
    at,
  };
}

export const partitionsEnd: End = {
  title: "The inbox's partitions are ready again",
  advice: "No event lies outside of them, and the next ones are made. Nothing is left to do.",
};
