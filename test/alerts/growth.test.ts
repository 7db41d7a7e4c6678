import { expect, test } from "vitest";
import { atRiskIn } from "../../src/parts/alerts/condition.ts";
import { type Condition, conditionTimeline, peakFacts } from "../../src/parts/alerts/timeline.ts";

const at = new Date("2026-03-01T12:00:00Z");
const broken = (measures: Record<string, number>): Condition => ({
  key: "identity:totals",
  rule: "identity_broken",
  severity: "critical",
  title: "The identity totals does not hold",
  advice: "",
  facts: [],
  measures,
  at,
});

/** The stages that are told, one after another, as the measures go. */
function told(...rounds: Record<string, number>[]): string[] {
  let facts: Record<string, unknown> | null = null;
  const stages = new Set<string>();
  for (const measures of rounds) {
    const timeline = conditionTimeline(broken(measures), facts === null ? null : { openedAt: at, facts });
    ({ facts } = { facts: { ...timeline.facts } });
    stages.add(timeline.stages.at(-1)?.name ?? "");
  }
  return [...stages];
}

test.each([
  ["what stays as it is", [{ n: 3 }, { n: 3 }, { n: 5 }], ["opened"]],
  ["what falls", [{ n: 3 }, { n: 1 }, { n: 3 }], ["opened"]],
  ["each doubling", [{ n: 3 }, { n: 6 }, { n: 11 }, { n: 12 }], ["opened", "grown:1", "grown:2"]],
  ["a jump", [{ n: 3 }, { n: 300 }, { n: 301 }], ["opened", "grown:1"]],
  [
    "an amount",
    [
      { n: 3, eur: 100 },
      { n: 3, eur: 200 },
    ],
    ["opened", "grown:1"],
  ],
  ["a currency that came later", [{ n: 3 }, { n: 3, eur: 1 }, { n: 3, eur: 2 }], ["opened", "grown:1"]],
])("%s", (_, rounds, stages) => {
  expect(told(...(rounds as Record<string, number>[]))).toEqual(stages);
});

test("what is over says how bad it was, money as money", () => {
  const { facts } = conditionTimeline(broken({ breaches: 3, [atRiskIn("USD")]: 1_250 }), null);
  expect(peakFacts(facts)).toEqual([{ label: "At its worst", value: "3 breaches, 12.50 USD at risk" }]);
  expect(peakFacts({ title: "x" })).toEqual([]);
});
