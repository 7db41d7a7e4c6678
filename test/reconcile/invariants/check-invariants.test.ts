import { beforeEach, describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../src/platform/errors.ts";
import { addDailySums, clearDailySums } from "../../../src/parts/reconcile/coverage/ledger.ts";
import { acknowledgeFinding } from "../../../src/parts/reconcile/findings/findings.ts";
import { checkInvariants } from "../../../src/parts/reconcile/invariants/check-invariants.ts";
import type { InvariantMode } from "../../../src/parts/reconcile/invariants/invariant.ts";
import { emptyMirror } from "../../mirror/copies.ts";
import { at } from "../../mirror/samples.ts";
import { byCommand } from "../../support/by-command.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { applyAll, customer, cycle, listed, now, order, paidOrder, sale, subscription, told } from "./whole-mirror.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyMirror(database.db);
  await emptyTables(database.db, ["reconcile.findings", "reconcile.runs"], {
    numbersRestart: true,
  });
});

const later = (minutes: number): Date => new Date(now.getTime() + minutes * 60_000);

async function check({
  at: moment = now,
  asOf = moment,
  modes = {},
  run = null,
}: {
  at?: Date;
  asOf?: Date;
  modes?: Record<string, InvariantMode>;
  run?: number | null;
} = {}) {
  const options = { modes, run, timeZone: "Europe/Berlin" };
  return (await checkInvariants(database.db, { now: moment, asOf }, options)).filter(
    ({ breaches, opened, healed }) => breaches + opened + healed > 0,
  );
}

interface FindingRow {
  id: string;
  key: string;
  state: string;
  severity: string;
  resource: string;
  evidence: unknown;
  history: unknown[];
  differences: unknown;
  healed_at: Date | null;
}

const findings = () => database.db<FindingRow>("reconcile.findings").orderBy("key");

const broken = paidOrder("x", { total: 990 }, { amount: 990 });
const mended = paidOrder("x", { updated_at: at(100) }, { updated_at: at(100) });

describe("what an identity finds", () => {
  it("is a finding that says what was expected, what was found and what is at risk", async () => {
    await applyAll(database.db, broken);
    expect(await check()).toEqual([
      { name: "total", severity: "critical", mode: "enforce", breaches: 1, opened: 1, healed: 0 },
    ]);
    expect(await findings()).toMatchObject([
      {
        key: "identity:total:order:x",
        state: "open",
        severity: "critical",
        resource: "order",
        amount_at_risk_minor: "10",
        currency: "usd",
        differences: [{ field: "total", service: "1000", mirror: "990" }],
        evidence: { mode: "enforce", holds: "total = subtotal − discount_amount" },
      },
    ]);
  });

  it("stays one finding, heals, and is reopened", async () => {
    await applyAll(database.db, broken);
    await check();
    expect(await check({ at: later(1) })).toMatchObject([{ opened: 0, healed: 0, breaches: 1 }]);
    await applyAll(database.db, mended);
    expect(await check({ at: later(2) })).toMatchObject([{ name: "total", healed: 1, breaches: 0 }]);
    expect(await findings()).toMatchObject([{ state: "healed", healed_at: later(2) }]);
    await applyAll(
      database.db,
      paidOrder("x", { total: 990, updated_at: at(200) }, { amount: 990, updated_at: at(200) }),
    );
    expect(await check({ at: later(3) })).toMatchObject([{ name: "total", opened: 1 }]);
    const [finding] = await findings();
    expect(finding).toMatchObject({ state: "reopened", healed_at: null });
    expect(finding?.history).toHaveLength(1);
  });

  it("stays acknowledged while it lasts", async () => {
    await applyAll(database.db, broken);
    await check();
    const [finding] = await findings();
    const id = Number(finding?.id);
    await acknowledgeFinding(database.db, { id, by: byCommand("ada"), note: "known", at: now });
    await check({ at: later(1) });
    expect(await findings()).toMatchObject([{ state: "acknowledged", ack_note: "known" }]);
  });
});

describe("what changed after the walk", () => {
  it("is not looked at yet", async () => {
    await applyAll(database.db, broken);
    expect(await check({ asOf: new Date(at(1)) })).toEqual([]);
    expect(await check({ asOf: new Date(at(2)) })).toMatchObject([{ name: "total" }]);
  });

  it("leaves its findings as they are", async () => {
    await applyAll(database.db, broken);
    await check();
    await applyAll(database.db, mended);
    expect(await check({ at: later(1), asOf: new Date(at(100)) })).toEqual([]);
    expect(await findings()).toMatchObject([{ state: "open" }]);
  });

  it("leaves the customer of a subscription that changed, too", async () => {
    const fields = { customer_id: "gone", status: "active" };
    await applyAll(database.db, [
      listed("customer", customer("gone", { deleted: true })),
      listed("subscription", subscription("x", fields)),
      ...cycle("x", 1, { customer_id: "gone" }, { customer_id: "gone" }),
    ]);
    expect(await check()).toMatchObject([{ name: "deleted_live", opened: 1 }]);
    await applyAll(database.db, [listed("subscription", subscription("x", { ...fields, updated_at: at(500) }))]);
    expect(await check({ at: later(1), asOf: new Date(at(400)) })).toEqual([]);
    expect(await findings()).toMatchObject([{ state: "open" }]);
  });

  it("counts for the order of a sale that changed, too", async () => {
    await applyAll(database.db, [
      ...paidOrder("x", {}, { status: "chargeback", updated_at: at(500) }),
      listed("order", order("y")),
      listed("transaction", sale("y", { amount: 1, updated_at: at(500) })),
    ]);
    expect(await check({ asOf: new Date(at(400)) })).toEqual([]);
  });
});

describe("the settings", () => {
  it("turn an identity off, or let it observe only", async () => {
    await applyAll(database.db, broken);
    expect(await check({ modes: { total: "off" } })).toEqual([]);
    expect(await check({ modes: { total: "observe" } })).toMatchObject([{ mode: "observe" }]);
    expect(await findings()).toMatchObject([{ evidence: { mode: "observe" } }]);
  });

  it("mark what an identity found before it was turned off", async () => {
    await applyAll(database.db, broken);
    await check();
    await check({ modes: { total: "off" }, at: later(1) });
    expect(await findings()).toMatchObject([{ state: "open", evidence: { mode: "off" } }]);
    await check({ at: later(2) });
    expect(await findings()).toMatchObject([{ state: "open", evidence: { mode: "enforce" } }]);
  });

  it("refuse the name of no identity, and say which one may be meant", async () => {
    const checked = check({ modes: { chargeback_mach: "off" } });
    await expect(checked).rejects.toThrow(ConfigurationError);
    await expect(checked).rejects.toThrow("Did you mean chargeback_match?");
  });
});

it("keeps the thousand worst breaches and heals none of the others", async () => {
  await applyAll(
    database.db,
    Array.from({ length: 1_001 }, (_, n) => listed("order", order(`o${n}`, { status: "voided", total: 1_001 + n }))),
  );
  expect(await check()).toMatchObject([{ name: "total", breaches: 1_001, opened: 1_000 }]);
  const kept = await findings().pluck("object_id");
  expect(kept).not.toContain("o0");
  await applyAll(database.db, [listed("order", order("o0", { status: "voided", total: 9_000, updated_at: at(50) }))]);
  expect(await check({ at: later(1) })).toMatchObject([{ opened: 1, healed: 0 }]);
});

it("survives fields of a kind that nobody expected", async () => {
  const odd = { percentage: "a lot", amount: [], max_discount_amount: {}, duration_in_cycles: "x" };
  await applyAll(database.db, [
    ...paidOrder("x", { applied_coupon: odd, items: { a: 1 } }),
    ...paidOrder("y", { applied_coupon: 7, items: [], transactions: 4 }),
    listed("order", order("z", { status: "on_hold", total: 5, subtotal: 5 })),
    listed(
      "subscription",
      subscription("s", {
        billing_cycle: { interval: "month", interval_count: 1e12, anchor_day: "signup_date" },
        applied_coupon: { ...odd, duration: "repeating" },
      }),
    ),
    ...cycle("s", 1),
  ]);
  expect((await check()).map(({ name }) => name)).toEqual(["coupon_shape"]);
});

describe("the control of daily sums", () => {
  let run: number;
  const transactions = ["a", "b", "c"];
  const slice = () => ({ run, slice: 1 });

  beforeEach(async () => {
    const [row] = await database
      .db("reconcile.runs")
      .insert({ run_key: "nightly:1", kind: "nightly", t0: now }, ["id"]);
    run = Number((row as { id: string }).id);
    await database.db("reconcile.coverage").insert({
      run,
      slice: 1,
      step: "transactions",
      resource: "transaction",
      path: "/transactions",
      filter: {},
      created_from: at(-86_400),
      created_before: at(86_400),
      is_closed: true,
      reason: "window",
      state: "complete",
      read_at: at(3_600),
    });
    await applyAll(
      database.db,
      transactions.flatMap((id) => paidOrder(id)),
    );
  });

  const seenThere = (ids: readonly string[], amountMinor = 1_000) =>
    database.db.transaction((trx) =>
      addDailySums(
        trx,
        slice(),
        "Europe/Berlin",
        ids.map(() => ({
          createdAt: at(1),
          currency: "usd",
          type: "sale",
          status: "succeeded",
          amountMinor,
        })),
      ),
    );

  it("finds nothing where count and sum are the service's, page by page", async () => {
    await seenThere(["a", "b"]);
    await seenThere(["c"]);
    expect(await check({ run })).toEqual([]);
  });

  it("finds the day, currency, type and status that differ, and heals with them", async () => {
    await seenThere(["a", "b", "c", "d"]);
    expect(await check({ run })).toMatchObject([{ name: "control", breaches: 1 }]);
    expect(await findings()).toMatchObject([
      {
        key: "identity:control:day:2025-03-01 usd sale succeeded",
        amount_at_risk_minor: "1000",
        differences: [{ field: "control", service: "4 with a sum of 4000", mirror: "3 with a sum of 3000" }],
      },
    ]);
    expect(await check({ run: null, at: later(1) })).toEqual([]);
    await database.db.transaction((trx) => clearDailySums(trx, slice()));
    await seenThere(transactions);
    expect(await check({ run, at: later(2) })).toMatchObject([{ name: "control", healed: 1 }]);
  });

  it("finds the same count with another sum", async () => {
    await seenThere(transactions, 999);
    expect(await check({ run })).toMatchObject([{ name: "control", breaches: 1 }]);
  });

  it("says nothing of a day in which something changed after the slice was read", async () => {
    await seenThere(["a", "b", "c", "d"]);
    await applyAll(database.db, [told("transaction", sale("a", { status: "chargeback", updated_at: at(7_200) }))]);
    const found = await check({ run });
    expect(found.filter(({ name }) => name === "control")).toEqual([]);
  });

  it("says nothing of a slice that was not read to its end", async () => {
    await seenThere(["a"]);
    await database.db("reconcile.coverage").update({ state: "failed" });
    expect(await check({ run })).toEqual([]);
  });
});
