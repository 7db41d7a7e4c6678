import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/cli/reconcile-output.ts";
import type { RunTotals } from "../../src/reconcile/totals.ts";

const totals = (given: Partial<RunTotals>): RunTotals => ({
  slices: { complete: 4, skipped: 0, failed: 0, pending: 0 },
  pages: 1,
  rows: {},
  verdicts: {},
  confirmed: {},
  calls: 1,
  healed: {},
  left: {},
  amountAtRiskMinor: {},
  otherFindings: {},
  ...given,
});
const plain = { failOnDrift: false, strict: false };
const healed = totals({ healed: { behind: 2 } });

test.each([
  ["equal", true, totals({}), plain, 0],
  ["healed", true, healed, plain, 0],
  ["healed, where that fails", true, healed, { ...plain, failOnDrift: true }, 5],
  ["drift left", true, totals({ left: { mismatch: 1 } }), plain, 3],
  [
    "drift left beside what was healed",
    true,
    totals({ left: { mismatch: 1 }, healed: { behind: 1 } }),
    { ...plain, failOnDrift: true },
    3,
  ],
  ["an identity is broken", true, totals({ otherFindings: { total: 1 } }), plain, 0],
  [
    "an identity is broken, strictly",
    true,
    totals({ otherFindings: { total: 1 } }),
    { ...plain, strict: true },
    3,
  ],
  ["incomplete", false, totals({}), plain, 4],
  ["incomplete, with drift left", false, totals({ left: { mismatch: 1 } }), plain, 4],
])("%s", (_, complete, given, options, code) => {
  expect(exitCodeOf({ complete, totals: given }, options)).toBe(code);
});
