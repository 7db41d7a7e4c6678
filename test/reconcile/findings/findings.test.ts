import { expect, test } from "vitest";
import {
  type Finding,
  acknowledgeFinding,
  healCoveredFindings,
  healFindings,
  healUnseenFindings,
  recordFindings,
} from "../../../src/parts/reconcile/findings/findings.ts";
import { byCommand } from "../../support/by-command.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

const at = (hour: number) => ({ run: null, seenAt: new Date(Date.UTC(2025, 0, 1, hour)) });
const finding = (key: string, total = 1): Finding => ({
  key,
  class: "identity",
  identity: "total",
  severity: "critical",
  resource: "order",
  objectId: key,
  differences: [{ field: "total", service: total, mirror: 0 }],
  amountAtRiskMinor: BigInt(total),
  currency: "usd",
  cause: null,
  evidence: { total },
});
const stored = (key: string) => database.db("reconcile.findings").where({ key }).first();

test("a finding opens once, is refreshed, heals, and is reopened with its former life kept", async () => {
  const { db } = database;
  const change = async (hour: number, total?: number) =>
    (await recordFindings(db, at(hour), [finding("a", total)])).map((one) => one.change);
  expect(await change(1)).toEqual(["opened"]);
  expect(await change(2, 7)).toEqual(["refreshed"]);
  expect(await stored("a")).toMatchObject({
    state: "open",
    first_seen: at(1).seenAt,
    last_seen: at(2).seenAt,
    amount_at_risk_minor: "7",
  });
  expect(await healFindings(db, at(3), ["a", "none"])).toBe(1);
  expect(await healFindings(db, at(4), ["a"])).toBe(0);
  expect(await stored("a")).toMatchObject({ state: "healed", healed_at: at(3).seenAt });
  expect(await change(5)).toEqual(["reopened"]);
  expect(await change(6)).toEqual(["refreshed"]);
  const reopened = await stored("a");
  expect(reopened).toMatchObject({ state: "reopened", first_seen: at(5).seenAt, healed_at: null });
  expect(reopened.history).toMatchObject([{ evidence: { total: 7 } }]);
});

test("an acknowledged finding stays so while it lasts, and not beyond", async () => {
  const { db } = database;
  await recordFindings(db, at(1), [finding("b")]);
  const { id } = await stored("b");
  const ack = { id: Number(id), by: byCommand("jo"), note: "known", at: at(2).seenAt };
  expect(await acknowledgeFinding(db, ack)).toBe(true);
  await recordFindings(db, at(3), [finding("b")]);
  expect(await stored("b")).toMatchObject({
    state: "acknowledged",
    ack_by: "jo",
    ack_note: "known",
  });
  await healFindings(db, at(4), ["b"]);
  expect(await acknowledgeFinding(db, ack)).toBe(false);
  await recordFindings(db, at(5), [finding("b")]);
  expect(await stored("b")).toMatchObject({ state: "reopened", ack_by: null });
});

test("an acknowledged finding of the same amount in another currency is open again", async () => {
  const { db } = database;
  await recordFindings(db, at(1), [finding("c")]);
  const { id } = await stored("c");
  await acknowledgeFinding(db, {
    id: Number(id),
    by: byCommand("jo"),
    note: "a cent",
    at: at(2).seenAt,
  });
  await recordFindings(db, at(3), [{ ...finding("c"), currency: "kwd" }]);
  expect(await stored("c")).toMatchObject({ state: "reopened", ack_by: null, currency: "kwd" });
});

test.each(["identity", "mismatch"] as const)("an acknowledged %s that becomes another is open again", async (kind) => {
  const { db } = database;
  const of = (total: number): Finding => ({ ...finding(kind, total), class: kind });
  await recordFindings(db, at(1), [of(1)]);
  const { id } = await stored(kind);
  await acknowledgeFinding(db, {
    id: Number(id),
    by: byCommand("jo"),
    note: "a cent",
    at: at(2).seenAt,
  });
  await recordFindings(db, at(3), [of(1)]);
  expect(await stored(kind)).toMatchObject({ state: "acknowledged" });
  await recordFindings(db, at(4), [of(99_999)]);
  const again = await stored(kind);
  expect(again).toMatchObject({ state: "reopened", ack_by: null, first_seen: at(4).seenAt });
  expect(again.history).toMatchObject([{ ack_by: "jo", ack_note: "a cent" }]);
  // Reports count one life that lasts, not two.
  const { rows } = await db.raw("select ack_by from reports.finding_lives() where finding = ? and healed_at is null", [
    id,
  ]);
  expect(rows).toEqual([{ ack_by: null }]);
});

test("a complete check heals what it did not see again", async () => {
  const { db } = database;
  await recordFindings(db, at(1), [finding("c"), finding("d")]);
  await recordFindings(db, at(9), [finding("d")]);
  await healUnseenFindings(db, at(9), { class: "identity", identity: "total" });
  await recordFindings(db, at(10), [finding("d")]);
  await healUnseenFindings(db, at(10), { class: "identity", identity: "total" });
  expect((await stored("c")).healed_at).toEqual(at(9).seenAt);
  expect([(await stored("c")).state, (await stored("d")).state]).toEqual(["healed", "open"]);
});

test("an object that the mirror lacks is healed by a slice that covers its creation, and by no other", async () => {
  const { db } = database;
  const lacking = {
    class: "missing_here",
    identity: null,
    severity: "high",
    differences: [],
  } as const;
  await recordFindings(db, at(1), [
    { ...finding("dated"), ...lacking, objectAt: "2024-02-01T00:00:00Z" },
    { ...finding("undated"), ...lacking },
  ]);
  const healedBy = async (created_before: string | null, created_from: string | null = null) => {
    const [run] = await db("reconcile.runs")
      .insert({
        run_key: `${created_from} to ${created_before}`,
        kind: "nightly",
        t0: at(2).seenAt,
      })
      .returning("id");
    await db("reconcile.coverage").insert({
      run: run.id,
      slice: 0,
      step: "changed",
      resource: "order",
      path: "/orders",
      filter: {},
      created_from,
      created_before,
      is_closed: true,
      reason: "test",
      state: "complete",
    });
    await healCoveredFindings(db, { run: run.id, seenAt: at(2).seenAt });
    return db("reconcile.findings").where({ class: "missing_here", state: "healed" }).orderBy("key").pluck("key");
  };
  expect(await healedBy("2024-02-01T00:00:00Z")).toEqual([]);
  expect(await healedBy(null, "2024-02-01T00:00:00.001Z")).toEqual([]);
  expect(await healedBy("2024-02-01T00:00:00.001Z")).toEqual(["dated"]);
  expect(await healedBy("2025-01-01T01:00:00Z")).toEqual(["dated"]);
  expect(await healedBy(null, "2020-01-01T00:00:00Z")).toEqual(["dated"]);
  expect(await healedBy("2025-01-01T01:00:00.001Z")).toEqual(["dated", "undated"]);
});
