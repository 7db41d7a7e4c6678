import type { Begun } from "../condition.ts";
import type { WatchContext } from "../watch.ts";

/** Something that should have happened and did not: how often, since when, and for what. */
export interface AbsentThings {
  count: number;
  oldest: Date;
  /** Some of their names. */
  examples: readonly string[];
}

/** Facts shared by alerts about absent things. */
export const absentFacts = (
  { count, oldest, examples }: AbsentThings,
  { localTime }: Pick<WatchContext, "localTime">,
): Pick<Begun, "facts" | "storedFacts" | "measures"> => ({
  facts: [
    { label: "Since", value: localTime(oldest) },
    { label: "For example", value: examples.join(", ") },
  ],
  storedFacts: { count, since: oldest.toISOString(), examples: examples.join(", ") },
  measures: { missing: count },
});
