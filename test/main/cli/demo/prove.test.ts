import { expect, test } from "vitest";
import { type DemoSummary, whyNotProved } from "../../../../src/parts/sandbox/cli/demo/prove.ts";

const proving: DemoSummary = {
  delivered: 120,
  accepted: 100,
  duplicate: 10,
  rejected: 10,
  applied: 90,
  stale: 10,
  missing_before: 5,
  missing_after: 0,
  healed: 5,
  left: 0,
  complete: true,
  seconds: 10,
  equal: true,
};

test("a run that was badly delivered, healed whole and ended equal proves the point", () => {
  expect(whyNotProved(proving, 0)).toBe("");
});

test.each<[Partial<DemoSummary>, number, string]>([
  [{ equal: false, missing_after: 2 }, 0, "2 objects differ"],
  [{ complete: false }, 0, "reconciliation did not read everything"],
  [{ left: 3 }, 0, "reconciliation left 3 differences"],
  [{ left: 1 }, 0, "reconciliation left 1 difference"],
  [{ equal: false, missing_after: 1 }, 0, "1 object differs"],
  [{}, 4, "4 events are dead"],
  [{}, 1, "1 event is dead"],
  [{ missing_before: 0 }, 0, "the run had nothing to recover from: missing_before 0"],
  [{ healed: 0 }, 0, "the run had nothing to recover from: healed 0"],
  [{ duplicate: 0, rejected: 0 }, 0, "the run had nothing to recover from: duplicate 0, rejected 0"],
  [{ stale: 0 }, 0, "the run had nothing to recover from: stale 0"],
])("%j with %i dead events: %s", (changed, dead, why) => {
  expect(whyNotProved({ ...proving, ...changed }, dead)).toBe(why);
});
