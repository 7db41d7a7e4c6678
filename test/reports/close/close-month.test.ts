import { beforeEach, describe, expect, test } from "vitest";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { defaultAccounts } from "../../../src/parts/reports/base/account-map.ts";
import { historyFixedAfterSeconds, latestAsOf } from "../../../src/parts/reports/base/period.ts";
import { closeMonth, previewClose } from "../../../src/parts/reports/close/close-month.ts";
import { assertClosable } from "../../../src/parts/reports/close/refusal.ts";
import { findReport } from "../../../src/parts/reports/catalogue/all.ts";
import { findFrozen, readFrozen } from "../../../src/parts/reports/close/frozen.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { ask } from "../ask.ts";
import { letTimePass } from "../sandbox-history.ts";
import { coverAll } from "../coverage.ts";
import { mirrorSales } from "../shop.ts";

let database: TestDatabase;
const timeZone = "Europe/Berlin";
const may = { from: "2025-05-01", to: "2025-05-31", timeZone };
const june = { from: "2025-06-01", to: "2025-06-30", timeZone };

const close = (month: string, reason: string | null = null) =>
  closeMonth(database.db, { month, timeZone, accounts: defaultAccounts, reason, by: "anna" });

beforeEach(async () => {
  database = await createTestDatabase();
  await mirrorSales(database.db, [
    { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
    { nth: 2, at: "2025-05-20T10:00:00Z", amount: 500, currency: "jpy" },
    { nth: 3, at: "2025-06-02T10:00:00Z", amount: 70 },
  ]);
  await letTimePass(database.db);
  return () => database.destroy();
});

/** A refund of May that is learned after May was closed. */
const learnLate = () =>
  mirrorSales(database.db, [
    {
      nth: 1,
      at: "2025-05-10T10:00:00Z",
      amount: 1000,
      status: "partially_refunded",
      updatedAt: "2025-05-31T12:00:00Z",
      refunds: [{ at: "2025-05-31T12:00:00Z", amount: 300 }],
    },
  ]);

test("refuses a month of which not everything was read, and says what to do", async () => {
  await expect(close("2025-05")).rejects.toThrow(/INCOMPLETE: all \d+ reports.*Not read: .*up to 2025-05-31/s);
  expect(await database.db("reports.closed_rows")).toEqual([]);
});

test("closes an unproved month with a reason, which stands on every report of it", async () => {
  await close("2025-05", "the service was away");
  const frozen = await findFrozen(database.db, may, findReport("refunds"));
  expect(frozen?.about.close).toMatchObject({ month: "2025-05", reason: "the service was away" });
  expect(frozen?.about.proof.verdict).toBe("INCOMPLETE");
});

describe("of a month that is proved", () => {
  beforeEach(() => coverAll(database.db, "2025-07-01T00:00:00Z"));

  test("closes it without a reason, and gives the same rows whatever is learned later", async () => {
    const before = await ask(database.db, "month-end", may);
    expect(before.about.proof.verdict).toBe("PASS");
    const closed = await close("2025-05");
    expect(closed.verdict).toBe("PASS");
    await letTimePass(database.db);
    await learnLate();
    const frozen = await findFrozen(database.db, may, findReport("month-end"));
    if (frozen === null) throw new Error("nothing is frozen");
    const about = await readFrozen(database.db, frozen, null, () => {});
    expect(about).toMatchObject({ sha256: before.about.sha256, close: { reason: null } });
    expect((await ask(database.db, "month-end", may)).about.sha256).toBe(before.about.sha256);
  });

  test("keeps the exceptions as they were, whatever becomes of them and whatever else is found", async () => {
    const find = (objectId: string, amountAtRiskMinor: number, seenAt: string) =>
      recordFindings(database.db, { run: null, seenAt: new Date(seenAt) }, [
        {
          key: `late:order:${objectId}`,
          class: "behind",
          identity: null,
          severity: "warning",
          resource: "order",
          objectId,
          differences: [{ field: "total", service: amountAtRiskMinor, mirror: 4 }],
          amountAtRiskMinor: BigInt(amountAtRiskMinor),
          currency: "usd",
          cause: "late",
          evidence: {},
        },
      ]);
    await find("1", 5, "2025-05-12T00:00:00Z");
    await letTimePass(database.db);
    await close("2025-05");
    await find("1", 900, "2025-06-12T00:00:00Z");
    await find("2", 7, "2025-05-30T00:00:00Z");
    const frozen = await findFrozen(database.db, may, findReport("exceptions"));
    if (frozen === null) throw new Error("nothing is frozen");
    const rows: unknown[] = [];
    await readFrozen(database.db, frozen, null, (batch) => void rows.push(...batch));
    expect(rows).toHaveLength(1);
    expect(rows[0]).toEqual(expect.arrayContaining(["total=5", "total=4", "5"]));
  });

  test("books what is learned later in the first open month, apart and with its own date", async () => {
    await close("2025-05");
    await letTimePass(database.db);
    await learnLate();
    expect((await ask(database.db, "month-end", june)).rows).toMatchObject([
      {
        currency: "jpy",
        cumulative_gross_opening: "500",
        corrections: "0",
        cumulative_gross_closing: "500",
      },
      {
        currency: "usd",
        cumulative_gross_opening: "1000",
        sales: "70",
        refunds: "0",
        corrections: "-300",
        cumulative_gross_closing: "770",
      },
    ]);
    expect((await ask(database.db, "changes-after-close", june)).rows).toMatchObject([
      {
        kind: "refund",
        happened_on: "2025-05-31",
        booked_on: "2025-06-01",
        currency: "usd",
        amount: "-300",
      },
    ]);
    const { rows } = await ask(database.db, "journal", june);
    expect(rows.filter((row) => row["description"]?.includes("2025-05-31"))).toMatchObject([
      { number: "PRELIM-20250601-USD", account: "4100", debit: "300", credit: "0" },
      { number: "PRELIM-20250601-USD", account: "1200", debit: "0", credit: "300" },
    ]);
  });

  test("gives a final number to the days of the zone that months are closed by, and of no other", async () => {
    const entries = async (zone: string) =>
      (await ask(database.db, "journal", { ...may, timeZone: zone })).rows.map(({ number, status }) => [
        number?.split("-")[0],
        status,
      ]);
    await close("2025-05");
    expect(new Set((await entries(timeZone)).map(String))).toEqual(new Set(["TH,final"]));
    expect(new Set((await entries("Pacific/Auckland")).map(String))).toEqual(new Set(["PRELIM,preliminary"]));
  });

  describe("and closed with accounts of its own", () => {
    const accounts = { clearing: "10", sales: "20", refunds: "30", chargebacks: "40" };
    const numbers = async (asked: Parameters<typeof ask>[2]) =>
      (await ask(database.db, "journal", asked)).rows.map(({ number, account }) => [number, account]);
    const frozen = [
      ["TH-20250510-USD", "10"],
      ["TH-20250510-USD", "20"],
      ["TH-20250520-JPY", "10"],
      ["TH-20250520-JPY", "20"],
    ];

    beforeEach(() => closeMonth(database.db, { month: "2025-05", timeZone, accounts, reason: null, by: "anna" }));

    test("gives a final number to the frozen lines, of the month, of a part of it and of more", async () => {
      expect(await numbers({ ...may, accounts })).toEqual(frozen);
      expect(await numbers({ ...may, from: "2025-05-15", accounts })).toEqual(frozen.slice(2));
      expect(await numbers({ ...may, from: "2025-04-01", to: "2025-06-30", accounts })).toEqual([
        ...frozen,
        ["PRELIM-20250602-USD", "10"],
        ["PRELIM-20250602-USD", "20"],
      ]);
    });

    test("gives none to lines that are booked to other accounts, in whichever of its days", async () => {
      const preliminary = [
        ["PRELIM-20250510-USD", "1200"],
        ["PRELIM-20250510-USD", "4000"],
        ["PRELIM-20250520-JPY", "1200"],
        ["PRELIM-20250520-JPY", "4000"],
      ];
      expect(await numbers(may)).toEqual(preliminary);
      expect(await numbers({ ...may, from: "2025-05-15" })).toEqual(preliminary.slice(2));
    });

    test("gives none to a part of a day, which only BI tools can ask for", async () => {
      const { rows } = await database.db.raw<{ rows: { number: string }[] }>(
        `select distinct number from reports.journal('2025-05-10T10:00:00Z', '2025-05-10T12:00:00Z', ?, null, ?)
         union all
         select distinct number from reports.journal('2025-05-10T11:00:00Z', '2025-05-20T12:00:00Z', ?, null, ?)`,
        [timeZone, JSON.stringify(accounts), timeZone, JSON.stringify({ ...accounts, sales: "99" })],
      );
      expect(rows.map(({ number }) => number)).toEqual(["TH-20250510-USD", "PRELIM-20250520-JPY"]);
    });
  });

  test("gives journal entries their final numbers, and none to what may still change", async () => {
    const both = { ...may, to: june.to };
    const entries = async () =>
      (await ask(database.db, "journal", both)).rows.map((row) => [row["number"], row["status"], row["debit"]]);
    expect(new Set((await entries()).map(([, status]) => status))).toEqual(new Set(["preliminary"]));
    await close("2025-05");
    const frozen = await findFrozen(database.db, may, findReport("journal"));
    if (frozen === null) throw new Error("nothing is frozen");
    const numbers: unknown[] = [];
    await readFrozen(database.db, frozen, null, (batch) => {
      numbers.push(...batch.map(([number, status]) => [number, status]));
    });
    expect(numbers).toEqual([
      ["TH-20250510-USD", "final"],
      ["TH-20250510-USD", "final"],
      ["TH-20250520-JPY", "final"],
      ["TH-20250520-JPY", "final"],
    ]);
    await learnLate();
    expect(await entries()).toEqual([
      ["TH-20250510-USD", "final", "1000"],
      ["TH-20250510-USD", "final", "0"],
      ["TH-20250520-JPY", "final", "500"],
      ["TH-20250520-JPY", "final", "0"],
      ["PRELIM-20250601-USD", "preliminary", "300"],
      ["PRELIM-20250601-USD", "preliminary", "0"],
      ["PRELIM-20250602-USD", "preliminary", "70"],
      ["PRELIM-20250602-USD", "preliminary", "0"],
    ]);
  });

  test("takes the correction into the next close, and never books it twice", async () => {
    await close("2025-05");
    await letTimePass(database.db);
    await learnLate();
    await letTimePass(database.db);
    await close("2025-06");
    await letTimePass(database.db);
    const july = { from: "2025-07-01", to: "2025-07-31", timeZone };
    expect((await ask(database.db, "month-end", july)).rows).toMatchObject([
      { currency: "jpy", cumulative_gross_opening: "500", cumulative_gross_closing: "500" },
      {
        currency: "usd",
        cumulative_gross_opening: "770",
        corrections: "0",
        cumulative_gross_closing: "770",
      },
    ]);
  });

  test("takes back a sale that turns out to be void, as a difference of the same kind", async () => {
    await close("2025-05");
    await letTimePass(database.db);
    const voided = { status: "voided", saleStatus: "voided", updatedAt: "2025-06-03T00:00:00Z" };
    await mirrorSales(database.db, [{ nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000, ...voided }]);
    expect((await ask(database.db, "changes-after-close", june)).rows).toMatchObject([
      { kind: "sale", happened_on: "2025-05-10", booked_on: "2025-06-01", amount: "-1000" },
    ]);
    expect((await ask(database.db, "month-end", june)).rows[1]).toMatchObject({
      cumulative_gross_opening: "1000",
      sales: "70",
      corrections: "-1000",
      cumulative_gross_closing: "70",
    });
  });

  test("takes back a refund that the bank returns after the close, as a difference of the same kind", async () => {
    const sale = {
      nth: 5,
      at: "2025-05-11T10:00:00Z",
      amount: 900,
      updatedAt: "2025-05-20T10:00:00Z",
    };
    const refund = { at: "2025-05-20T10:00:00Z", amount: 400 };
    const { db } = database;
    await mirrorSales(db, [{ ...sale, status: "partially_refunded", refunds: [refund] }]);
    await letTimePass(db);
    await close("2025-05");
    await letTimePass(db);
    const updatedAt = "2025-06-03T09:00:00Z";
    const returned = { ...refund, status: "failed", updatedAt };
    await mirrorSales(db, [{ ...sale, status: "refund_failed", updatedAt, refunds: [returned] }]);
    const ofUsd = async (month: typeof may) =>
      (await ask(db, "month-end", month)).rows.find(({ currency }) => currency === "usd");
    expect(await ofUsd(may)).toMatchObject({ refunds: "400", cumulative_gross_closing: "1500" });
    expect((await ask(db, "changes-after-close", june)).rows).toMatchObject([
      { kind: "refund", happened_on: "2025-05-20", booked_on: "2025-06-01", amount: "400" },
    ]);
    expect(await ofUsd(june)).toMatchObject({
      cumulative_gross_opening: "1500",
      sales: "70",
      refunds: "0",
      corrections: "400",
      cumulative_gross_closing: "1970",
    });
  });

  test("freezes what was shown, whatever is learned before the answer, and nothing else", async () => {
    const { db } = database;
    const request = {
      month: "2025-05",
      timeZone,
      accounts: defaultAccounts,
      reason: null,
      by: "anna",
    };
    const shown = await previewClose(db, request);
    await mirrorSales(db, [{ nth: 9, at: "2025-05-21T10:00:00Z", amount: 9 }]);
    const [first, ...others] = shown.reports;
    const forged = { ...shown, reports: [{ ...first, rows: 77 } as typeof first, ...others] };
    await expect(closeMonth(db, request, forged as typeof shown)).rejects.toThrow("have changed since they were shown");
    const closed = await closeMonth(db, request, shown);
    expect(closed.asOf).toBe(shown.asOf);
    expect(closed.reports).toEqual(shown.reports);
  });

  test("takes an unsettled sale that is voided after the close off both balances", async () => {
    const { db } = database;
    const sale = { nth: 4, at: "2025-05-31T20:00:00Z", amount: 400 };
    await mirrorSales(db, [{ ...sale, saleStatus: "in_progress" }]);
    await letTimePass(db);
    await close("2025-05");
    await letTimePass(db);
    const voided = { status: "voided", saleStatus: "voided", updatedAt: "2025-06-02T00:00:00Z" };
    await mirrorSales(db, [{ ...sale, ...voided }]);
    const ofUsd = async (month: typeof may) =>
      (await ask(db, "month-end", month)).rows.find(({ currency }) => currency === "usd");
    expect(await ofUsd(may)).toMatchObject({
      sales: "1400",
      unsettled_opening: "0",
      unsettled_closing: "400",
    });
    expect(await ofUsd(june)).toMatchObject({
      cumulative_gross_opening: "1400",
      corrections: "-400",
      cumulative_gross_closing: "1070",
      unsettled_opening: "400",
      unsettled_closing: "0",
    });
    expect((await ask(db, "cut-off", may)).rows).toMatchObject([
      { paid_on: "2025-05-31", status: "voided", settled_on: null, amount: "400" },
    ]);
    expect((await ask(db, "cut-off", june)).rows).toEqual([]);
  });

  test("closes months in order, each once, and none that is not over", async () => {
    await close("2025-05");
    await expect(close("2025-05")).rejects.toThrow("the books are closed through 2025-05");
    await expect(close("2025-07")).rejects.toThrow("Close 2025-06 first");
    await expect(close("2025-06")).rejects.toThrow(/2025-05 was closed less than a minute ago.*Wait \d+ seconds/);
    await expect(close("2099-01")).rejects.toThrow("2099-01 is over at 2099-01-31T23:00:00Z");
  });

  test("does not say of a month before the first close that it is closed, since it has no close", async () => {
    await close("2025-05");
    await expect(close("2025-04")).rejects.toThrow("2025-04 cannot be closed: the books are closed through 2025-05.");
  });

  test("names the first time at which a month can be closed: a minute after its end, not its end", async () => {
    const period = { ...may, fromUtc: "2025-04-30T22:00:00Z", toUtc: "2025-05-31T22:00:00Z" };
    const closedAt = (now: string) =>
      assertClosable(database.db, "2025-05", period, new Date(Date.parse(now) - historyFixedAfterSeconds * 1000));
    const first = "2025-05-31T22:01:00.000Z";
    await expect(closedAt("2025-05-31T22:00:59.999Z")).rejects.toThrow(
      `can be closed from ${first} by the database's clock, where it is 2025-05-31T22:00:59.999Z.`,
    );
    await expect(closedAt(first)).resolves.toBeUndefined();
  });

  test("is refused by the days of another zone than the month before", async () => {
    await close("2025-05");
    await letTimePass(database.db);
    const asked = { month: "2025-06", accounts: defaultAccounts, reason: null, by: "anna" };
    const request = { ...asked, timeZone: "UTC" };
    await expect(closeMonth(database.db, request)).rejects.toThrow("Set TALLYHOOK_TIME_ZONE back to Europe/Berlin.");
  });

  test("is permanent: the database refuses a change, and a change by force is found", async () => {
    await close("2025-05");
    const { db } = database;
    await expect(db("reports.closed_rows").delete()).rejects.toThrow(/append-only/);
    await db.transaction(async (trx) => {
      await trx.raw("set local session_replication_role = replica");
      await trx.raw("update reports.closed_rows set cells[4] = '999' where report = 'month-end' and n = 1");
    });
    const frozen = await findFrozen(db, may, findReport("month-end"));
    if (frozen === null) throw new Error("nothing is frozen");
    await expect(readFrozen(db, frozen, null, () => {})).rejects.toThrow(
      "reports/month-end/rows differs from what was sealed",
    );
  });

  test("an auditor can do the sum of the rows with the database alone", async () => {
    await close("2025-05");
    const { rows } = await database.db.raw<{ rows: { sha256: string; given: string }[] }>(
      `select r.sha256, encode(sha256(convert_to((
          select '["' || string_agg(c->>'name', '","' order by n) || '"]' || chr(10)
          from jsonb_array_elements(r.columns) with ordinality as x(c, n)
        ) || coalesce((
          select string_agg(array_to_json(w.cells)::text || chr(10), '' order by w.n)
          from reports.closed_rows w where w.close = r.close and w.report = r.report), ''), 'UTF8')), 'hex') as given
       from reports.closed_reports r`,
    );
    expect(rows.length).toBeGreaterThan(10);
    for (const { sha256, given } of rows) expect(given).toBe(sha256);
  });

  test("of two who close at once, the other is told that it is closed", async () => {
    const [first, second] = await Promise.allSettled([close("2025-05"), close("2025-05")]);
    const [done, refused] = first?.status === "fulfilled" ? [first, second] : [second, first];
    expect(done).toMatchObject({ status: "fulfilled", value: { verdict: "PASS" } });
    expect(refused).toMatchObject({
      reason: { why: { hindrances: [{ check: "order", closedThrough: "2025-05" }] } },
    });
  });

  test("before it was closed a month was what it was, also when it is asked afterwards", async () => {
    await learnLate();
    await letTimePass(database.db);
    const asOf = (await latestAsOf(database.db)).toISOString();
    const before = await ask(database.db, "month-end", { ...june, asOf });
    await close("2025-05");
    const after = await ask(database.db, "month-end", { ...june, asOf });
    expect(after.rows).toEqual(before.rows);
    expect(after.rows).not.toEqual([]);
    expect((await ask(database.db, "journal", { ...june, asOf })).rows).not.toEqual([]);
  });
});
