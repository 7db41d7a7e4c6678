import { beforeEach, describe, expect, test } from "vitest";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { defaultAccounts } from "../../../src/parts/reports/base/account-map.ts";
import { closeMonth } from "../../../src/parts/reports/close/close-month.ts";
import { writeBundle } from "../../../src/parts/reports/close/frozen.ts";
import {
  type Preparation,
  type Signer,
  approveMonth,
  findPreparation,
  isSamePerson,
  prepareMonth,
  withdrawPreparation,
} from "../../../src/parts/reports/close/prepare-month.ts";
import { verifyCloses } from "../../../src/parts/reports/close/verify.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { coverAll } from "../coverage.ts";
import { letTimePass } from "../sandbox-history.ts";
import { mirrorSales } from "../shop.ts";

let database: TestDatabase;
const timeZone = "Europe/Berlin";
const ada: Signer = { name: "ada@example.com", accountId: 1 };
const ben: Signer = { name: "ben@example.com", accountId: 2 };
const request = { month: "2025-05", timeZone, accounts: defaultAccounts, reason: null };

const prepare = (by = ada, steps = {}) => prepareMonth(database.db, { ...request, by }, steps);
const approve = (preparation: Preparation, by = ben, more = {}, steps = {}) =>
  approveMonth(database.db, { preparation, by, timeZone, region: "global", fourEyes: true, ...more }, steps);
const closedMonths = () => database.db("reports.closes").count<{ count: string }[]>();

async function bundleOf(month: string): Promise<string> {
  const chunks: string[] = [];
  await writeBundle(database.db, month, (chunk) => {
    chunks.push(String(chunk));
    return Promise.resolve();
  });
  return chunks.join("");
}

beforeEach(async () => {
  database = await createTestDatabase();
  await mirrorSales(database.db, [
    { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
    { nth: 2, at: "2025-05-20T10:00:00Z", amount: 500, currency: "jpy" },
    { nth: 3, at: "2025-06-02T10:00:00Z", amount: 70 },
  ]);
  await coverAll(database.db, "2025-07-01T00:00:00Z");
  await letTimePass(database.db);
  return () => database.destroy();
});

/** A refund of May that is learned after May was prepared. */
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

test("what one prepared another closes: the same hashes, and both names under the seal", async () => {
  const preparation = await prepare();
  const close = await approve(preparation);
  expect(close).toMatchObject({ closedBy: ben.name, preparedBy: ada.name, verdict: "PASS" });
  expect(close.asOf).toBe(preparation.asOf);
  expect(close.reports).toEqual(preparation.reports);
  expect(await findPreparation(database.db, "2025-05")).toBeNull();
  const { closes, problems } = await verifyCloses(database.db);
  expect(problems).toEqual([]);
  expect(closes).toMatchObject([{ closedBy: ben.name, preparedBy: ada.name, problems: [] }]);
});

test("the names under the seal cannot be changed", async () => {
  await approve(await prepare());
  await database.db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    await trx("reports.closes").update({ prepared_by: "eve" });
  });
  const { closes } = await verifyCloses(database.db);
  expect(closes[0]?.problems).toEqual(['prepared_by is "eve", but "ada@example.com" was sealed']);
});

test("the script for auditors reads both versions, and names both people", async () => {
  await approve(await prepare());
  const script = new URL("../../../docs/verify-close.mjs", import.meta.url).href;
  const { verifyBundle } = (await import(script)) as {
    verifyBundle(chunks: readonly Buffer[]): Promise<{ facts: Record<string, string> }>;
  };
  const bundle = await bundleOf("2025-05");
  expect((await verifyBundle([Buffer.from(bundle)])).facts).toMatchObject({
    closed_by: ben.name,
    prepared_by: ada.name,
  });
  const forged = bundle.replace('["tallyhook-close",2]', '["tallyhook-close",3]');
  await expect(verifyBundle([Buffer.from(forged)])).rejects.toThrow("was changed");
});

test("who closes alone leaves a manifest of the first version, byte by byte as ever", async () => {
  await closeMonth(database.db, { ...request, by: "ada" });
  const bundle = await bundleOf("2025-05");
  expect(bundle.split("\n")[1]).toBe('["tallyhook-close",1]');
  expect(bundle).not.toContain("prepared_by");
});

describe("the one who prepared", () => {
  test.each([
    ["the same account", ada],
    ["the same account under another name", { name: "countess@example.com", accountId: 1 }],
    ["the same name from a command", { name: " ADA@Example.com ", accountId: null }],
  ])("does not close: %s", async (_, by) => {
    await expect(approve(await prepare(), by)).rejects.toThrow("another person has to close it");
    expect(await closedMonths()).toEqual([{ count: "0" }]);
  });

  test("closes alone where four eyes are off, and the seal does not say that two did", async () => {
    const close = await approve(await prepare(), ada, { fourEyes: false });
    expect(close).not.toHaveProperty("preparedBy");
  });
});

test("another full width or spacing is no other person", () => {
  expect(isSamePerson({ name: "Ada  L", accountId: null }, { name: "ａda l", accountId: null })).toBe(true);
  expect(isSamePerson(ada, ben)).toBe(false);
});

describe("of what was prepared nothing is closed when", () => {
  test("a refund of the month was learned since: the sums before and after are named", async () => {
    const preparation = await prepare();
    await learnLate();
    await letTimePass(database.db);
    await expect(approve(preparation)).rejects.toMatchObject({
      changes: ["Booked as usd refund: it was nothing, and is 1 movement of -3.00."],
    });
    expect(await closedMonths()).toEqual([{ count: "0" }]);
  });

  test("a movement took another's place and the sums are as they were", async () => {
    const preparation = await prepare();
    await mirrorSales(database.db, [
      {
        nth: 1,
        at: "2025-05-10T10:00:00Z",
        amount: 1000,
        status: "voided",
        saleStatus: "voided",
        updatedAt: "2025-05-11T00:00:00Z",
      },
      { nth: 8, at: "2025-05-12T10:00:00Z", amount: 1000 },
    ]);
    await letTimePass(database.db);
    await expect(approve(preparation)).rejects.toMatchObject({
      changes: ["Movements that are booked in it have changed, and their sums have not."],
    });
  });

  test("a serious finding was opened since", async () => {
    const preparation = await prepare();
    await recordFindings(database.db, { run: null, seenAt: new Date("2025-05-12T23:00:00Z") }, [
      {
        key: "missing:order:abc",
        class: "missing_there",
        identity: null,
        severity: "critical",
        resource: "order",
        objectId: "abc",
        differences: [],
        amountAtRiskMinor: 5n,
        currency: "usd",
        cause: "unexplained",
        evidence: {},
      },
    ]);
    await letTimePass(database.db);
    await expect(approve(preparation)).rejects.toMatchObject({
      changes: ["The verdict was PASS, and is FAIL (open findings: 1)."],
    });
  });

  test("the history of its own time was changed by hand", async () => {
    const preparation = await prepare();
    const [first, ...others] = preparation.reports;
    const forged = [{ ...first, sha256: "0".repeat(64) }, ...others] as Preparation["reports"];
    await expect(approve({ ...preparation, reports: forged })).rejects.toThrow(
      /The rows of daily-control have changed/,
    );
  });

  test("the days are cut in another zone by now", async () => {
    const preparation = await prepare();
    await expect(approve(preparation, ben, { timeZone: "UTC" })).rejects.toThrow(
      "It was prepared in time zone Europe/Berlin",
    );
  });

  test("it was withdrawn", async () => {
    const preparation = await prepare();
    const withdraw = () => database.db.transaction((trx) => withdrawPreparation(trx, preparation, ada));
    expect(await withdraw()).toBe(true);
    expect(await withdraw()).toBe(false);
    await expect(approve(preparation)).rejects.toMatchObject({ refusal: "outdated" });
  });

  test("it is withdrawn while the reports are read", async () => {
    const preparation = await prepare();
    let isWithdrawn = false;
    const tell = () => {
      if (isWithdrawn) return;
      isWithdrawn = true;
      withdrawn = database.db.transaction((trx) => withdrawPreparation(trx, preparation, ada));
    };
    let withdrawn: Promise<boolean> = Promise.resolve(false);
    const closing = approve(preparation, ben, {}, { tell });
    await expect(closing).rejects.toMatchObject({ refusal: "outdated" });
    expect(await withdrawn).toBe(true);
    expect(await closedMonths()).toEqual([{ count: "0" }]);
  });

  test("another took its place, which is the one that stands", async () => {
    const first = await prepare();
    const second = await prepare(ben);
    expect((await findPreparation(database.db, "2025-05"))?.id).toBe(second.id);
    await expect(approve(first)).rejects.toMatchObject({ refusal: "outdated" });
    await expect(approve(second, ada)).resolves.toMatchObject({ preparedBy: ben.name });
  });

  test("the caller's check refuses, and its record fails", async () => {
    const preparation = await prepare();
    const fails = async () => {
      throw new Error("no");
    };
    await expect(approve(preparation, ben, {}, { check: fails })).rejects.toThrow("no");
    await expect(approve(preparation, ben, {}, { record: fails })).rejects.toThrow("no");
    expect(await closedMonths()).toEqual([{ count: "0" }]);
    expect((await findPreparation(database.db, "2025-05"))?.id).toBe(preparation.id);
  });
});

test("of two who approve at once one closes the month, and the other is told that it is closed", async () => {
  const preparation = await prepare();
  const results = await Promise.allSettled([
    approve(preparation),
    approve(preparation, { name: "cy@example.com", accountId: 3 }),
  ]);
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const refused = results.find((result) => result.status === "rejected");
  expect(String(refused?.reason)).toContain("closed through 2025-05");
});

test("who prepares on another state than they saw is refused", async () => {
  const { id } = await prepare();
  await expect(prepare(ben, { replaces: null })).rejects.toMatchObject({ refusal: "outdated" });
  await expect(prepare(ben, { replaces: id })).resolves.toMatchObject({ preparedBy: ben });
});

test("a month that cannot be closed cannot be prepared: not over, out of order, not proved", async () => {
  const of = (month: string) => prepareMonth(database.db, { ...request, month, by: ada });
  await expect(of("2099-01")).rejects.toThrow("2099-01 is over at");
  await expect(of("2025-07")).rejects.toThrow("2025-07 is not proved");
  await approve(await prepare());
  await letTimePass(database.db);
  await expect(of("2025-05")).rejects.toThrow("closed through 2025-05");
  await expect(of("2025-07")).rejects.toThrow("Close 2025-06 first");
  expect(await database.db("reports.preparations").count()).toEqual([{ count: "1" }]);
});

test("nobody changes a preparation or what became of it", async () => {
  await prepare();
  await prepare(ben);
  for (const table of ["preparations", "preparation_ends"]) {
    await expect(database.db(`reports.${table}`).delete()).rejects.toThrow(/append-only/);
  }
});
