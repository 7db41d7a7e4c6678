import { beforeEach, expect, test } from "vitest";
import { registerFindings } from "../../../src/parts/reconcile/cli/findings.ts";
import { type Finding, recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { runCommand } from "./command-line.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(() => emptyTables(database.db, ["reconcile.findings"], { numbersRestart: true }));

const finding: Finding = {
  key: "identity:one_sale:order-1",
  class: "identity",
  identity: "one_sale",
  severity: "critical",
  resource: "order",
  objectId: "order-1",
  differences: [],
  amountAtRiskMinor: 1_250n,
  currency: "usd",
  cause: null,
  evidence: { mode: "enforce" },
};
const seenAt = new Date("2026-10-01T00:00:00Z");

const record = (...findings: Finding[]) => recordFindings(database.db, { run: null, seenAt }, findings);
const run = (...args: string[]) =>
  runCommand(registerFindings, ["findings", ...args], { env: { DATABASE_URL: database.url } });
const verdict = async () => {
  const { rows } = await database.db.raw<{ rows: Record<string, unknown>[] }>(
    "select open_findings, open_warnings from reports.verdict('2026-09-01', '2026-10-01')",
  );
  return rows[0];
};

test("lists what is open, and what it puts at risk", async () => {
  await record(finding);
  const { out } = await run("list");
  expect(out).toContain("one_sale");
  expect(out).toContain("order order-1");
  expect(out).toContain("12.50 USD");
  expect(out).toContain("open 1, reopened 0, acknowledged 0, healed 0");
});

test("what is acknowledged is no longer listed as open, fails no report, and keeps who said why", async () => {
  await record(finding);
  expect(await verdict()).toEqual({ open_findings: "1", open_warnings: "0" });
  expect((await run("ack", "1", "--by", "ada", "--note", "charged back at the bank")).error).toBe(null);
  expect(JSON.parse((await run("list", "--json")).out)).toMatchObject({ findings: [] });
  expect(JSON.parse((await run("show", "1", "--json")).out)).toMatchObject({
    state: "acknowledged",
    ack_by: "ada",
    ack_note: "charged back at the bank",
  });
  expect(await verdict()).toEqual({ open_findings: "0", open_warnings: "0" });
});

test("what an identity finds that is only observed warns, and fails no report", async () => {
  await record({ ...finding, evidence: { mode: "observe" } });
  expect(await verdict()).toEqual({ open_findings: "0", open_warnings: "1" });
  expect((await run("list")).out).toContain("critical, observed");
});

test.each([
  [["ack", "7", "--note", "gone"], /There is no finding "7"/],
  [["ack", "1", "--note", " "], /argument ' ' is invalid/],
  [["show", "seven"], /Use a whole number/],
  [["list", "--state", "closed"], /Use one of open, reopened/],
  [["list", "--all", "--state", "open"], /--all. cannot be used with option .--state/],
])("%j is answered with what is wrong and what is possible", async (args, message) => {
  await record(finding);
  const { error, err } = await run(...args);
  expect(`${String(error)}${err}`).toMatch(message);
});

test("what is healed cannot be acknowledged", async () => {
  await record(finding);
  await database.db("reconcile.findings").update({ state: "healed", healed_at: seenAt });
  expect(String((await run("ack", "1", "--note", "late")).error)).toMatch(/Finding 1 is healed/);
});
