import { expect, test } from "vitest";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import { isWireId } from "../../src/core/contract/wire-types.ts";
import {
  apply,
  at,
  sampleCustomer,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { ask } from "./ask.ts";
import { letTimePass } from "./sandbox-history.ts";

const database = useTestDatabase();

const dates = ["2026-01-31", "2024-02-29", "2025-02-29", "2026-04-31", "2026-00-10", "2026-13-01"];
const oddDates = ["0000-01-01", "0001-01-01", "9999-12-31", "2026-01-00", "2026-1-1", "12026-01-01"];
const hours = ["00:00:00", "23:59:59", "24:00:00", "12:60:00", "12:00:60", "12:00", "1:00:00"];
const fractions = ["", ".1", ".123456", ".1234567", ".999999999", ".1234567891", ".", ",5"];
const zones = ["Z", "z", "+02:00", "-0230", "+14", "+23:59", "-23:59", "+24:00", "+01:60", "", " UTC"];
const texts = [...dates, ...oddDates].flatMap((date) =>
  ["T", "t", " ", "  "].flatMap((between) =>
    hours.flatMap((time) =>
      fractions.flatMap((fraction) => zones.map((zone) => `${date}${between}${time}${fraction}${zone}`)),
    ),
  ),
);

test("the reports read a time of the history as the mirror reads it", async () => {
  const { rows } = await database.db.raw<{ rows: { text: string; read: string | null }[] }>(
    `select t.text, to_char(reports.moment(to_jsonb(t.text)) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as read
     from unnest(?::text[]) t(text)`,
    [[...texts, "", "now", "infinity", "2026-01-01"]],
  );
  const differing = rows.filter(({ text, read }) => read !== canonicalTimestamp(text));
  expect(differing).toEqual([]);
  expect(rows.filter(({ read }) => read !== null).length).toBeGreaterThan(500);
});

test.each([["5"], ["true"], ["null"], ["{}"], ['["2026-01-01T00:00:00Z"]']])(
  "… and %s as no time, no text, no id and no status",
  async (json) => {
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      `select reports.moment(v) as m, reports.text_of(v) as t, reports.id_of(v) as i, reports.code_of(v) as c
       from (select cast(? as jsonb) as v) given`,
      [json],
    );
    expect(rows).toEqual([{ m: null, t: null, i: null, c: null }]);
  },
);

test("ids are told from other texts as the mirror tells them", async () => {
  const ids = ["a", "é b", "x".repeat(255), "x".repeat(256), "", "a\nb", "a\u0085b", "\u007f"];
  const { rows } = await database.db.raw<{ rows: { text: string; id: string | null }[] }>(
    "select t.text, reports.id_of(to_jsonb(t.text)) as id from unnest(?::text[]) t(text)",
    [ids],
  );
  expect(rows).toEqual(ids.map((text) => ({ text, id: isWireId(text) ? text : null })));
});

test.each([["0"], ["-12"], ["9007199254740991"], ["-9007199254740991"]])(
  "a whole number is one that the mirror keeps exactly: %s",
  async (json) => {
    const { rows } = await database.db.raw<{ rows: { n: string }[] }>("select reports.whole(cast(? as jsonb)) as n", [
      json,
    ]);
    expect(String(rows[0]?.n)).toBe(json);
  },
);

test.each([["9007199254740992"], ["1e300"], ["1.5"], ['"1"'], ["999999999999999999"]])(
  "… and %s is none",
  async (json) => {
    const { rows } = await database.db.raw<{ rows: { n: string | null }[] }>(
      "select reports.whole(cast(? as jsonb)) as n",
      [json],
    );
    expect(rows).toEqual([{ n: null }]);
  },
);

const oddTimes = ["soon", "2025-02-30T00:00:00Z", "2025-03-01T00:00:00+19:00", 5, {}];

test("one odd value in the history stops no report, and as of then each says what it said", async () => {
  const { db } = database;
  for (const [n, odd] of oddTimes.entries()) {
    const ids = { id: `order-${n}`, customer_id: `customer-${n}` };
    await apply(
      db,
      shown("order", sampleOrder({ ...ids, created_at: odd, failure_code: 7, payment_method: "card" })),
      seen("transaction", sampleTransaction({ id: `sale-${n}`, order_id: ids.id, customer_id: 7 }), 5),
      seen(
        "subscription",
        sampleSubscription({
          id: `subscription-${n}`,
          created_at: n % 2 === 0 ? at(0) : odd,
          current_period_start: odd,
          canceled_at: odd,
          plan: { id: "plan", amount: n === 0 ? 999_999_999_999_999 : "much", currency: 5 },
          billing_cycle: { interval: "day", interval_count: 1 },
          applied_coupon: { duration: "forever", percentage: 1e300 },
        }),
        5,
      ),
      seen("customer", sampleCustomer({ id: ids.customer_id, created_at: odd }), 5),
    );
  }
  const period = { from: "2025-01-01", to: "2025-12-31" };
  const now = new Map<string, unknown>();
  for (const { name } of allReports) now.set(name, (await ask(db, name, period)).rows);
  await letTimePass(db);
  for (let n = 0; n < oddTimes.length; n++) {
    await apply(
      db,
      shown("order", sampleOrder({ id: `order-${n}`, status: "refunded", updated_at: at(90) }), at(90)),
      seen("transaction", sampleTransaction({ id: `sale-${n}`, status: "voided", updated_at: at(90) }), 95),
      seen("subscription", sampleSubscription({ id: `subscription-${n}`, status: "canceled", updated_at: at(90) }), 95),
      seen("customer", sampleCustomer({ id: `customer-${n}`, updated_at: at(90) }), 95),
    );
  }
  const asOf = new Date(Date.now() - 30 * 60_000).toISOString();
  for (const { name } of allReports) {
    expect({ name, rows: (await ask(db, name, { ...period, asOf })).rows }).toEqual({
      name,
      rows: now.get(name),
    });
  }
});
