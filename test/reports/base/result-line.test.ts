import { expect, test } from "vitest";
import { resultLine } from "../../../src/parts/reports/base/report-facts.ts";
import { about } from "../sample-about.ts";

const line = (proof: Partial<(typeof about)["proof"]>) => resultLine({ ...about, proof: { ...about.proof, ...proof } });

test.each([
  ["0", "PASS"],
  ["1", "PASS (1 warning is open)"],
  ["2", "PASS (2 warnings are open)"],
])("a proved report with %s open warnings says %j", (openWarnings, said) => {
  expect(line({ verdict: "PASS", openWarnings })).toBe(said);
});

test.each([
  ["0", "FAIL: rows of this report differ"],
  ["1", "FAIL: 1 finding is open"],
  ["2", "FAIL: 2 findings are open"],
])("a report with %s open findings says %j", (openFindings, said) => {
  expect(line({ verdict: "FAIL", openFindings })).toContain(said);
});

test("a period that is not over says until when it is proved so far, and nothing of what to do", () => {
  const [period, asOf] = [{ ...about.period, toUtc: "2026-12-01T00:00:00Z" }, "2026-11-20T09:00:00.000Z"];
  const said = (readUntil: string | null, at = asOf) =>
    resultLine({
      period,
      asOf: at,
      proof: { ...about.proof, verdict: "INCOMPLETE", readUntil },
    });
  expect(said("2026-11-20T03:40:00Z")).toBe(
    "SO FAR, proved until 2026-11-20T03:40:00Z; the period ends at 2026-12-01T00:00:00Z",
  );
  expect(said(null)).toMatch(/^INCOMPLETE: /);
  expect(said("2026-11-20T03:40:00Z", "2026-12-01T00:00:00.000Z")).toMatch(/^INCOMPLETE: /);
});
