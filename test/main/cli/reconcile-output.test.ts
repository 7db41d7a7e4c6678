import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { exitCodeOf, exitReason, printResult } from "../../../src/parts/reconcile/cli/reconcile.ts";
import type { ReconcileResult, RunTotals } from "../../../src/parts/reconcile/runs/finish-run.ts";

const totals = (given: Partial<RunTotals>): RunTotals => ({
  slices: { complete: 4, skipped: 0, failed: 0, pending: 0 },
  pages: 1,
  rows: {},
  verdicts: {},
  confirmed: {},
  calls: 1,
  healed: {},
  left: {},
  acknowledged: {},
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
  ["an identity is broken, strictly", true, totals({ otherFindings: { total: 1 } }), { ...plain, strict: true }, 3],
  ["incomplete", false, totals({}), plain, 4],
  ["incomplete, with drift left", false, totals({ left: { mismatch: 1 } }), plain, 4],
])("%s", (_, complete, given, options, code) => {
  expect(exitCodeOf({ complete, totals: given }, options)).toBe(code);
});

test.each([
  [{ otherFindings: { one_sale: 1 } }, "1 open finding that is no drift (one_sale 1)"],
  [{ otherFindings: { one_sale: 1, endpoint: 2 } }, "3 open findings that are no drift (one_sale 1, endpoint 2)"],
  [{ healed: { behind: 2 } }, "exit code 5, because --fail-on-drift counts what was healed (behind 2)"],
])("a code other than 0 after 'equals the service' has its reason: %j", (given, reason) => {
  const all = { failOnDrift: true, strict: true };
  const result = { complete: true, totals: totals(given) };
  expect(exitReason(result, all)).toContain(reason);
  expect(exitReason(result, plain)).toBeNull();
});

test("what the last line says already is not said twice", () => {
  const all = { failOnDrift: true, strict: true };
  const worst = totals({
    left: { mismatch: 1 },
    otherFindings: { one_sale: 1 },
    healed: { behind: 1 },
  });
  expect(exitReason({ complete: true, totals: worst }, all)).toBeNull();
  expect(exitReason({ complete: false, totals: worst }, all)).toBeNull();
});

const t0 = new Date("2025-03-02T00:00:00Z");
const range = { rangeFrom: new Date("2025-03-01T00:00:00Z"), rangeTo: null };

test.each([
  ["full", totals({}), "The mirror equals the service."],
  [
    "nightly",
    totals({ acknowledged: { mismatch: 2 }, healed: { behind: 1 } }),
    "The mirror equals the service, except for what was acknowledged (findings: 2); healed: 1 difference.",
  ],
  ["range", totals({}), "What was created in the range equals the service."],
] as const)("what a %s run says is no more than it has read", (kind, counted, verdict) => {
  const out = new PassThrough();
  const run = { id: 1, runKey: "k", kind, t0, ...range, reportOnly: false, isInitialImport: false };
  const result: ReconcileResult = {
    run: { ...run, pageSize: 10, state: "complete" },
    totals: counted,
    coverage: { complete: true, gaps: [] },
    complete: true,
    error: null,
    resumeAfter: null,
  };
  printResult(out as unknown as NodeJS.WriteStream, result);
  const text = stripVTControlCharacters(String(out.read()));
  expect(text).toContain(`${verdict}\n`);
  expect(text).toMatch(
    kind === "range"
      ? /created .* from 2025-03-01T00:00:00.000Z, before 2025-03-02T00:00:00.000Z/
      : /everything created before .* 2025-03-02T00:00:00.000Z/,
  );
});
