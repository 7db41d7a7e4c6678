import { expect, test } from "vitest";
import { statusRank } from "../../src/mirror/version.ts";
import { defaultAccounts } from "../../src/reports/base/account-map.ts";
import { currencyDigits } from "../../src/platform/money.ts";
import { allReports } from "../../src/reports/catalogue/all.ts";
import { failureCodes } from "../../src/contract/decline-codes.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();

test("every failure code of the service has a group, and no other code has", async () => {
  const codes = await database.db("reports.decline_groups").pluck<string[]>("code");
  expect(codes.sort()).toEqual([...failureCodes].sort());
});

test("ties of states are settled as the mirror settles them", async () => {
  const known = ["pending", "in_progress", "failed", "active", "succeeded", "paused", "past_due"];
  const later = [
    "partially_refunded",
    "refund_failed",
    "refunded",
    "voided",
    "chargeback",
    "completed",
  ];
  const last = ["chargeback_accepted", "chargeback_dismissed", "canceled", "something new"];
  for (const status of [...known, ...later, ...last]) {
    const { rows } = await database.db.raw<{ rows: { rank: number }[] }>(
      "select reports.status_rank(?) as rank",
      [status],
    );
    expect([status, rows[0]?.rank]).toEqual([status, statusRank(status)]);
  }
});

test("the accounts of SQL and of the command line are the same", async () => {
  const { rows } = await database.db.raw<{ rows: { accounts: unknown }[] }>(
    "select reports.default_accounts() as accounts",
  );
  expect(rows[0]?.accounts).toEqual(defaultAccounts);
});

const byCode = (a: { code: string }, b: { code: string }): number => (a.code < b.code ? -1 : 1);

test("currencies of SQL have the decimals that the program prints", async () => {
  const rows = await database
    .db("reports.currencies")
    .orderBy("code")
    .select<{ code: string; exponent: number }[]>();
  expect(rows).toEqual(
    [...currencyDigits].map(([code, exponent]) => ({ code, exponent })).sort(byCode),
  );
});

test.each(allReports)(
  "$name shows the columns of its function and no others",
  async ({ source, columns }) => {
    const { rows } = await database.db.raw<{ rows: { names: string[] }[] }>(
      `select array_agg(a.name order by a.n) as names
     from pg_proc p, unnest(p.proargnames, p.proargmodes) with ordinality as a(name, mode, n)
     where p.pronamespace = 'reports'::regnamespace and p.proname = ? and a.mode = 't'`,
      [source],
    );
    expect(columns.map(({ name }) => name)).toEqual(rows[0]?.names);
  },
);
