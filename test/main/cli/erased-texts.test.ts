import { beforeEach, describe, expect, test } from "vitest";
import { raise } from "../../../src/parts/alerts/raise-conditions.ts";
import { noSubject } from "../../../src/parts/alerts/timeline.ts";
import { registerCustomers } from "../../../src/main/cli/customers.ts";
import { redacted } from "../../../src/platform/redaction.ts";
import { acknowledgeFinding, recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { settingsOf, testAlertContext } from "../../alerts/test-alert-context.ts";
import { emptyDispatch, registerHandler } from "../../dispatch/dispatch-stand.ts";
import { apply, at, sampleCustomer, sampleOrder, seen } from "../../mirror/samples.ts";
import { byCommand } from "../../support/by-command.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyAll } from "../../worker/worker-stand.ts";
import { runCommand } from "./command-line.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
const about = "Jane Doe called, jane@example.com";
const aboutNobody = "a person called";

beforeEach(async () => {
  const { db } = database;
  await emptyAll(db);
  await emptyDispatch(db);
  await emptyTables(db, ["mirror.erasures", "reconcile.findings", "receiver.secrets"]);
  await apply(db, seen("customer", sampleCustomer({ last_name: "Doe" }), 900), seen("order", sampleOrder(), 900));
});

const erase = (...args: string[]) =>
  runCommand(registerCustomers, ["customers", "erase", "customer-1", "--yes", ...args], {
    env: { DATABASE_URL: database.url },
  });

describe("an erasure takes out what people wrote about the person elsewhere:", () => {
  test("notes of acknowledgements, of now, of former lives and of versions", async () => {
    const { db } = database;
    const found = (objectId: string, second: number) =>
      recordFindings(db, { run: null, seenAt: new Date(at(second)) }, [
        {
          key: `mismatch:order:${objectId}`,
          class: "mismatch",
          identity: null,
          severity: "warning",
          resource: "order",
          objectId,
          differences: [{ field: "total", service: second, mirror: 0 }],
          amountAtRiskMinor: null,
          currency: null,
          cause: null,
          evidence: {},
        },
      ]);
    await found("order-8", 0);
    await found("order-9", 0);
    const ids = await db("reconcile.findings").orderBy("id").pluck<string[]>("id");
    for (const [n, id] of ids.entries()) {
      const note = n === 0 ? about : aboutNobody;
      await acknowledgeFinding(db, {
        id: Number(id),
        by: byCommand("ada"),
        note,
        at: new Date(at(1)),
      });
    }
    await db("reconcile.findings").update({ state: "healed", healed_at: at(2) });
    await found("order-8", 3);
    await found("order-9", 3);
    expect(JSON.stringify(await db("reconcile.findings"))).toContain("Jane");

    await erase();
    const left = JSON.stringify([await db("reconcile.findings"), await db("reconcile.finding_versions")]);
    expect(left).not.toMatch(/jane/i);
    expect(left).toContain(aboutNobody);
    expect(left).toContain("order-8");
  });

  const insertPause = async (reasons: readonly string[]) => {
    for (const [n, reason] of reasons.entries()) {
      await registerHandler(database.db, { name: `handler-${n}`, from: "now" });
      await database
        .db("dispatch.handlers")
        .where({ name: `handler-${n}` })
        .update({ paused_at: at(0), paused_by: "person", pause_reason: reason });
    }
  };
  const insertHeals = (reasons: readonly string[]) =>
    database.db("mirror.heals").insert(
      reasons.map((reason, n) => ({
        resource: "order",
        id: `order-9${n}`,
        healed_by: "ada",
        reason,
        after_sha256: "0",
        changed_columns: "{}",
      })),
    );
  const insertPreparations = (reasons: readonly string[]) =>
    database.db("reports.preparations").insert(
      reasons.map((reason) => ({
        month: "2025-05-01",
        time_zone: "UTC",
        as_of: at(0),
        prepared_by: "ada",
        verdict: "FAIL",
        reason,
        accounts: "{}",
        reports: "[]",
        booked: "[]",
        movements_mark: "",
      })),
    );
  const insertSecrets = (reasons: readonly string[]) =>
    database
      .db("receiver.secrets")
      .insert(reasons.map((note, n) => ({ id: `db:${n}`, ciphertext: Buffer.of(), key_id: "k", note })));
  const insertErasures = (reasons: readonly string[]) =>
    database.db("mirror.erasure_log").insert(
      reasons.map((reason) => ({
        customer_id: "customer-0",
        erased_by: "ada",
        reason,
        counts: "{}",
      })),
    );

  test.each([
    ["reasons of pauses", insertPause, "dispatch.handlers", "pause_reason", "name"],
    ["reasons of heals", insertHeals, "mirror.heals", "reason", "seq"],
    ["reasons of months prepared", insertPreparations, "reports.preparations", "reason", "id"],
    ["notes of signing secrets", insertSecrets, "receiver.secrets", "note", "id"],
    ["reasons of former erasures", insertErasures, "mirror.erasure_log", "reason", "id"],
  ])("%s", async (_, insert, table, column, key) => {
    await insert([about, aboutNobody]);
    const texts = () => database.db(table).whereNotNull(column).orderBy(key).pluck(column);
    expect(await texts()).toEqual(expect.arrayContaining([about, aboutNobody]));
    const { out, error } = await erase();
    expect(error).toBeNull();
    expect(out).toContain("reasons 1");
    expect((await texts()).slice(-2)).toEqual([redacted, aboutNobody]);
    // Nobody else changes them.
    if (!["dispatch.handlers", "receiver.secrets"].includes(table)) {
      await expect(database.db(table).update({ [column]: "else" })).rejects.toThrow("append-only");
    }
  });

  test("the reasons of heals of the person's own objects, whatever they say", async () => {
    await database.db("mirror.heals").insert({
      resource: "order",
      id: "order-1",
      healed_by: "ada",
      reason: "she called",
      after_sha256: "0",
      changed_columns: "{}",
    });
    await erase();
    expect(await database.db("mirror.heals").where({ id: "order-1" }).pluck("reason")).toEqual([redacted]);
  });

  test("the reason of the erasure itself", async () => {
    await erase("--reason", "Jane Doe asked to");
    const log = database.db("mirror.erasure_log").where({ customer_id: "customer-1" });
    expect((await log.orderBy("id").pluck("reason")).at(-1)).toBe(redacted);
  });

  test("the reason of a pause in what channels were told", async () => {
    const { db } = database;
    const told = testAlertContext({ settings: settingsOf({ digests: { when: "off" } }) });
    const conditions = [about, aboutNobody].map((value, n) => ({
      key: `behind:handler-${n}`,
      rule: "handler_behind" as const,
      severity: "error" as const,
      title: "something",
      advice: "",
      facts: [{ label: "Why", value }],
      kept: {},
      measures: {},
      subject: noSubject,
      at: new Date(),
    }));
    await db.transaction((trx) => raise(trx, told, conditions, "sweep"));
    expect(JSON.stringify(await db("alerts.outbox"))).toContain("Jane");
    await erase();
    const left = JSON.stringify(await db("alerts.outbox"));
    expect(left).not.toContain("Jane");
    expect(left).toContain(aboutNobody);
  });
});

test("an erasure tells of closed months whose reason names the person: it is under their seals", async () => {
  // A close of an earlier version, which no role could write today.
  await database.db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    await trx("reports.closes").insert({
      id: 1,
      month: "2025-05-01",
      time_zone: "UTC",
      from_at: at(0),
      to_at: at(1),
      as_of: at(1),
      verdict: "FAIL",
      reason: about,
      sha256: "0",
      sha256_covers: "rows",
    });
  });
  const { err } = await erase();
  expect(err).toContain("stay under their seals: 2025-05.");
  expect(await database.db("reports.closes").pluck("reason")).toEqual([about]);
});
