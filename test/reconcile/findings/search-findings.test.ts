import { beforeAll, describe, expect, test } from "vitest";
import {
  type Finding,
  acknowledgeFinding,
  findFinding,
  recordFindings,
} from "../../../src/parts/reconcile/findings/findings.ts";
import { withoutPersonalEvidence } from "../../../src/parts/reconcile/findings/redact-findings.ts";
import {
  type FindingCursor,
  type FindingFilter,
  findingVersion,
  findingsOfObject,
  searchFindings,
  countOpenFindings,
  sumOpenFindings,
} from "../../../src/parts/reconcile/findings/search-findings.ts";
import { byCommand } from "../../support/by-command.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();
const seenAt = new Date("2026-11-22T03:41:00Z");
const open = ["open", "reopened"] as const;

const finding = (key: string, changes: Partial<Finding> = {}): Finding => ({
  key,
  class: "mismatch",
  identity: null,
  severity: "warning",
  resource: "order",
  objectId: key,
  differences: [{ field: "total", service: 2, mirror: 1 }],
  amountAtRiskMinor: 1n,
  currency: "usd",
  cause: null,
  evidence: {},
  ...changes,
});

beforeAll(async () => {
  const { db } = database;
  await recordFindings(db, { run: null, seenAt }, [
    finding("a"),
    finding("b", { severity: "high", amountAtRiskMinor: 995n }),
    finding("c", {
      severity: "critical",
      class: "identity",
      identity: "sums",
      resource: null,
      objectId: null,
    }),
    finding("d", {
      severity: "high",
      evidence: { mode: "observe" },
      class: "identity",
      identity: "x",
    }),
    finding("e", {
      severity: "warning",
      resource: "customer",
      currency: null,
      amountAtRiskMinor: null,
    }),
  ]);
});

const keysOf = async (filter: Partial<FindingFilter>, after: FindingCursor | null = null) =>
  (await searchFindings(database.db, { states: open, ...filter }, { after, limit: 10 })).map(
    ({ object_id: id, identity }) => id ?? identity,
  );

describe("a search", () => {
  test("gives the most severe first and the newest of each, and goes on after any row", async () => {
    const all = await keysOf({});
    expect(all[0]).toBe("sums");
    expect(new Set(all.slice(1, 3))).toEqual(new Set(["b", "d"]));
    expect(all).toHaveLength(5);
    const rows = await searchFindings(database.db, { states: open }, { limit: 10 });
    for (const [n, { severity, id }] of rows.entries()) {
      const after = { severity: severity as Finding["severity"], id };
      expect(await keysOf({}, after)).toEqual(all.slice(n + 1));
    }
  });

  test("that includes healed ones gives the newest first, and goes on after any row", async () => {
    const states = ["open", "healed"] as const;
    const rows = await searchFindings(database.db, { states }, { limit: 10 });
    const ids = rows.map(({ id }) => Number(id));
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
    const [first] = rows;
    const after = { severity: "critical" as const, id: first?.id ?? "" };
    expect(await searchFindings(database.db, { states }, { after, limit: 10 })).toEqual(rows.slice(1));
  });

  test("narrows by what is given", async () => {
    expect(await keysOf({ severity: "critical" })).toEqual(["sums"]);
    expect(await keysOf({ resource: "customer" })).toEqual(["e"]);
    expect(await keysOf({ object: "b" })).toEqual(["b"]);
    expect(await keysOf({ class: "identity", severity: "high" })).toEqual(["d"]);
    expect(await keysOf({ ids: [] })).toEqual([]);
    expect(await keysOf({ states: ["healed"] })).toEqual([]);
    expect(await keysOf({ object: "' or 1=1 --" })).toEqual([]);
  });
});

test("the sums count what is enforced and open, by list, severity and currency", async () => {
  const sums = await sumOpenFindings(database.db);
  expect(sums.find(({ severity, isDrift }) => severity === "high" && isDrift)).toEqual({
    resource: "order",
    severity: "high",
    isDrift: true,
    isAcknowledged: false,
    currency: "usd",
    n: 1,
    amountAtRiskMinor: "995",
    oldest: seenAt,
  });
  expect(sums.reduce((all, { n }) => all + n, 0)).toBe(4);
});

test("the metric counts what is enforced and nobody has accepted, also what came again, and nothing that is only observed", async () => {
  const { db } = database;
  const count = async () =>
    Object.fromEntries((await countOpenFindings(db)).map(({ class: kind, currency, n }) => [`${kind} ${currency}`, n]));
  const before = await count();
  expect(before).toEqual({ "mismatch usd": 2, "identity usd": 1, "mismatch null": 1 });
  await db("reconcile.findings").where({ key: "a" }).update({ state: "reopened" });
  expect(await count()).toEqual(before);
  await db("reconcile.findings").where({ key: "a" }).update({ state: "open" });
});

test("the findings of an object are those that are not healed", async () => {
  const found = await findingsOfObject(database.db, { resource: "order", id: "a" });
  expect(found).toHaveLength(1);
  expect(await findingsOfObject(database.db, { resource: "customer", id: "a" })).toEqual([]);
});

test("a finding's version changes with a decision, and not by being read", async () => {
  const { db } = database;
  const { id } = await db("reconcile.findings").where({ key: "a" }).first("id");
  const read = async () => findingVersion((await findFinding(db, Number(id))) as never);
  const first = await read();
  expect(await read()).toBe(first);
  await acknowledgeFinding(db, { id: Number(id), by: byCommand("ada"), note: "known", at: seenAt });
  expect(await read()).not.toBe(first);
});

test("without what may be personal, a finding keeps known fields, states and times", () => {
  const shown = withoutPersonalEvidence({
    class: "mismatch",
    differences: [
      { field: "total", service: 2, mirror: 1 },
      { field: "email", service: "(differs)", mirror: "(differs)" },
      { field: "card_last_four", service: "4242", mirror: null },
      { field: "failure_reason", service: "Grace's bank said no", mirror: "declined" },
      { field: "Grace Hopper's wish", service: "(differs)", mirror: null },
    ],
    evidence: { changed_at: "2026", reason: "quotes Grace" },
    ack_note: "Grace called",
  });
  expect(JSON.stringify(shown)).not.toContain("Grace");
  expect(shown.differences).toEqual([
    { field: "total", service: 2, mirror: 1 },
    { field: "email", service: "(differs)", mirror: "(differs)" },
    { field: "card_last_four", service: "(differs)", mirror: null },
    { field: "failure_reason", service: "(differs)", mirror: "(differs)" },
    { field: "another field", service: "(differs)", mirror: "(differs)" },
  ]);
  expect(shown.evidence).toEqual({ changed_at: "2026" });
});
