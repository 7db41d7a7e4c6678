import { expect, test } from "vitest";
import { statusRank } from "../../src/core/mirror/version.ts";
import { defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { currencyDigits } from "../../src/platform/money.ts";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { declineGroupOf } from "../../src/core/mirror/dunning/decline-groups.ts";
import { isCaptured, isRefunded } from "../../src/parts/reports/catalogue/daily-control/daily-control.ts";
import { settingsOf } from "../alerts/test-alert-context.ts";
import { failureCodes } from "../../src/core/contract/decline-codes.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();

test("every failure code of the service has the group that alerts give it, and no other code has one", async () => {
  const rows = await database
    .db("reports.decline_groups")
    .select<{ code: string; code_group: string }[]>("code", "code_group");
  const inSql = Object.fromEntries(rows.map(({ code, code_group: group }) => [code, group]));
  expect(inSql).toEqual(Object.fromEntries(failureCodes.map((code) => [code, declineGroupOf(code)])));
});

test("what is near a threshold in the report is near it in an alert that nobody set", async () => {
  const { share } = settingsOf({}).rules.chargeback_ratio;
  const { rows } = await database.db.raw<{ rows: { here: boolean; there: boolean }[] }>(
    `select reports.is_near(n, 1000) as here, reports.is_near(n, 1000, ?) as there from generate_series(0, 1000) n`,
    [share],
  );
  expect(rows.filter(({ here, there }) => here !== there)).toEqual([]);
});

test("figures of the daily control tell sales and refunds apart as the balances do", async () => {
  const types = ["sale", "refund", "auth", "something new"];
  const statuses = ["pending", "in_progress", "succeeded", "failed", "voided", "chargeback", "new"];
  for (const [type, status] of types.flatMap((a) => statuses.map((b) => [a, b] as const))) {
    const { rows } = await database.db.raw<{ rows: { captured: boolean; refunded: boolean }[] }>(
      "select reports.is_captured(:type, :status) as captured, reports.is_refunded(:type, :status) as refunded",
      { type, status },
    );
    const inFigures = {
      captured: isCaptured({ type, status }),
      refunded: isRefunded({ type, status }),
    };
    expect({ type, status, ...rows[0] }).toEqual({ type, status, ...inFigures });
  }
});

test("ties of states are settled as the mirror settles them", async () => {
  const known = ["pending", "in_progress", "failed", "active", "succeeded", "paused", "past_due"];
  const later = ["partially_refunded", "refund_failed", "refunded", "voided", "chargeback", "completed"];
  const last = ["chargeback_accepted", "chargeback_dismissed", "canceled", "something new"];
  for (const status of [...known, ...later, ...last]) {
    const { rows } = await database.db.raw<{ rows: { rank: number }[] }>("select reports.status_rank(?) as rank", [
      status,
    ]);
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
  const rows = await database.db("reports.currencies").orderBy("code").select<{ code: string; exponent: number }[]>();
  expect(rows).toEqual([...currencyDigits].map(([code, exponent]) => ({ code, exponent })).sort(byCode));
});

test.each(allReports)("$name shows the columns of its function and no others", async ({ source, columns }) => {
  const { rows } = await database.db.raw<{ rows: { names: string[] }[] }>(
    `select array_agg(a.name order by a.n) as names
     from pg_proc p, unnest(p.proargnames, p.proargmodes) with ordinality as a(name, mode, n)
     where p.pronamespace = 'reports'::regnamespace and p.proname = ? and a.mode = 't'`,
    [source],
  );
  expect(columns.map(({ name }) => name)).toEqual(rows[0]?.names);
});
