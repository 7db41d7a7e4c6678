import { describe, expect, test } from "vitest";
import { wordingOf } from "../../../src/parts/alerts/alert-context.ts";
import { declineGroupOf } from "../../../src/core/mirror/dunning/decline-groups.ts";
import {
  type DeclinedOrder,
  declinedAttempts,
  nextRetryAfter,
} from "../../../src/core/mirror/dunning/declined-orders.ts";
import { declineTimelines } from "../../../src/parts/alerts/rules/declines.ts";
import { isNews } from "../../../src/parts/alerts/timeline.ts";
import { headlineText, sumTexts } from "../../../src/parts/alerts/rules/wording.ts";
import { hourWithoutEvents } from "../../../src/parts/alerts/rules/missing-events.ts";
import { usualLimit } from "../../../src/parts/alerts/storms/storms.ts";
import { maskedEmail } from "../../../src/platform/redaction.ts";
import { moneyText } from "../../../src/platform/money.ts";
import { affectedBy } from "../../../src/parts/alerts/assess.ts";
import { failureCodes } from "../../../src/core/contract/decline-codes.ts";
import { settingsOf, testAlertContext } from "../test-alert-context.ts";

const day = (n: number) => new Date(Date.UTC(2026, 2, n, 9));

const order = (fields: Partial<DeclinedOrder> = {}): DeclinedOrder => ({
  id: "order-1",
  orderNumber: "AB12CD34",
  customerId: "customer-1",
  status: "failed",
  totalMinor: 2_900n,
  currency: "usd",
  subscriptionId: "sub-1",
  cycle: 2,
  cardBrand: "visa",
  cardLastFour: "1111",
  failureReason: null,
  sales: [{ status: "failed", at: day(1), failureCode: "insufficient_funds" }],
  failures: [{ at: day(1), failureCode: "insufficient_funds" }],
  dunning: [{ at: day(1), attempt: 1, nextRetryAt: day(2), isRetryUnknown: false }],
  payments: [],
  firstAttempt: 1,
  voidedAt: null,
  subscription: null,
  ...fields,
});

const said = (nextRetryAt: Date | null, isRetryUnknown = false) => [
  { at: day(1), attempt: 1, nextRetryAt, isRetryUnknown },
];

const context = wordingOf(testAlertContext());

const told = (fields: Partial<DeclinedOrder>, rules = context.rules) => {
  const [timeline] = declineTimelines(order(fields), { ...context, rules });
  const last = timeline?.stages.at(-1);
  return { key: timeline?.key, rule: last?.rule, stage: last?.name, severity: last?.severity };
};

test.each([
  [2, true, /^Nothing to do yet\. The service retries by itself on 2026-03-02 09:00 UTC\.$/],
  [3, false, /^Write to the customer.*retries this card one last time on 2026-03-02 09:00 UTC\. If that fails/],
])("at attempt %i of a soft decline, waiting is %s: %s", (attempt, canWait, advice) => {
  const dunning = [{ at: day(1), attempt, nextRetryAt: day(2), isRetryUnknown: false }];
  const [timeline] = declineTimelines(order({ sales: [], dunning }), context);
  expect(timeline?.stages.at(-1)).toMatchObject({
    canWait,
    advice: expect.stringMatching(advice) as string,
  });
});

test("titles lead with the money, name the customer between, and never an id", () => {
  const sales = [1, 2].map((n) => ({
    status: "failed",
    at: day(n),
    failureCode: "insufficient_funds",
  }));
  const dunning = [{ at: day(2), attempt: 2, nextRetryAt: day(5), isRetryUnknown: false }];
  const kwd = order({ totalMinor: 12_345n, currency: "kwd", sales, dunning });
  const { title, headline } = declineTimelines(kwd, context)[0]!.stages.at(-1)!;
  expect(title).toBe("12.345 KWD renewal declined (2nd attempt): insufficient funds. Next retry 5 Mar 09:00");
  expect(headlineText(headline!, "l…@c….example")).toBe(
    "12.345 KWD renewal declined (2nd attempt), l…@c….example: insufficient funds. Next retry 5 Mar 09:00",
  );
  const gone = [{ at: day(2), attempt: 2, nextRetryAt: null, isRetryUnknown: false }];
  const last = declineTimelines({ ...kwd, dunning: gone }, context)[0]!.stages.at(-1)!;
  expect(headlineText(last.headline!, "l…@c….example")).toBe(
    "LOST 12.345 KWD renewal, l…@c….example: 2 attempts declined. Collect or cancel",
  );
});

test("a title that is too long loses what comes next, then its end", () => {
  const lead = `${"9".repeat(60)}.00 EUR renewal declined`;
  const headline = { lead, cause: "insufficient funds", next: "Next retry 24 Oct 14:25" };
  expect(headlineText(headline)).toBe(`${lead}: insufficient funds`);
  expect(headlineText({ lead: "9".repeat(200) })).toHaveLength(110);
});

describe("what is asked", () => {
  const of = (codes: string[]) => {
    const sales = codes.map((failureCode, n) => ({
      status: "failed",
      at: day(n + 1),
      failureCode,
    }));
    return declineTimelines(order({ sales, dunning: [] }), context)[0]!.stages.map(
      ({ name, canWait, repeats }) => `${name}${canWait ? " waits" : ""}${repeats ?? ""}`,
    );
  };

  test.each([
    ["soft", ["do_not_honor", "do_not_honor"], ["attempt:1 waits", "attempt:2 waits"]],
    [
      "soft, from the third attempt on",
      ["do_not_honor", "do_not_honor", "insufficient_funds", "do_not_honor"],
      ["attempt:1 waits", "attempt:2 waits", "attempt:3", "attempt:4attempt:3"],
    ],
    ["a new card", ["expired_card", "invalid_account"], ["attempt:1", "attempt:2attempt:1"]],
    [
      "fraud after all",
      ["expired_card", "fraud_suspected", "lost_stolen_card"],
      ["attempt:1", "attempt:2", "attempt:3attempt:2"],
    ],
  ])("%s is asked once for a renewal", (_name, codes, stages) => {
    expect(of(codes)).toEqual(stages);
  });
});

describe("the cases of a declined charge", () => {
  test.each<[string, Partial<DeclinedOrder>, object]>([
    [
      "one-time",
      { subscriptionId: null, cycle: null, dunning: said(null) },
      { key: "decline:order-1", rule: "decline", stage: "attempt:1", severity: "warning" },
    ],
    [
      "first charge",
      { cycle: null, dunning: said(null) },
      { key: "dunning:sub-1:first", rule: "dunning_first", stage: "attempt:1", severity: "error" },
    ],
    ["in dunning", {}, { key: "dunning:sub-1:2", rule: "dunning_renewal", stage: "attempt:1", severity: "warning" }],
    [
      "final",
      { dunning: said(null) },
      { key: "dunning:sub-1:2", rule: "dunning_final", stage: "final", severity: "error" },
    ],
    [
      "a missing key is unknown, not null",
      { dunning: said(null, true) },
      { rule: "dunning_renewal", stage: "attempt:1" },
    ],
    ["no dunning keys at all", { dunning: [] }, { rule: "dunning_renewal", stage: "attempt:1" }],
    [
      "unknown, completed by the subscription: final",
      {
        dunning: [],
        subscription: {
          status: "past_due",
          canceledAt: null,
          detail: { attempt: 1, nextRetryAt: null },
        },
      },
      { rule: "dunning_final", stage: "final" },
    ],
    [
      "the subscription speaks of another attempt",
      {
        dunning: [],
        subscription: {
          status: "past_due",
          canceledAt: null,
          detail: { attempt: 3, nextRetryAt: null },
        },
      },
      { stage: "attempt:1" },
    ],
    [
      "recovered",
      {
        status: "succeeded",
        sales: [
          { status: "failed", at: day(1), failureCode: "do_not_honor" },
          { status: "succeeded", at: day(2), failureCode: null },
        ],
      },
      { stage: "recovered" },
    ],
    [
      "canceled in between",
      { subscription: { status: "canceled", canceledAt: day(2), detail: null } },
      { stage: "canceled" },
    ],
    [
      "fraud",
      { sales: [{ status: "failed", at: day(1), failureCode: "fraud_suspected" }] },
      { stage: "attempt:1", severity: "critical" },
    ],
  ])("%s", (_name, fields, expected) => {
    expect(told(fields)).toMatchObject(expected);
  });

  test("an amount that is high in its currency is urgent; the same number in another is not", () => {
    const { rules } = settingsOf({
      rules: { dunning_renewal: { highAmountMinor: { USD: 2_900 } } },
    });
    expect(told({}, rules).severity).toBe("critical");
    expect(told({ dunning: said(null) }, rules)).toMatchObject({
      rule: "dunning_final",
      severity: "critical",
    });
    expect(told({ currency: "jpy" }, rules).severity).toBe("warning");
  });

  test("what was never declined has no story", () => {
    const paid = { sales: [{ status: "succeeded", at: day(1), failureCode: null }], failures: [] };
    expect(declineTimelines(order({ ...paid, dunning: [] }), context)).toEqual([]);
  });

  test("attempts are counted from sales, else from what events said, else from states", () => {
    const numbers = (fields: Partial<DeclinedOrder>) => declinedAttempts(order(fields)).map(({ number }) => number);
    const third = [{ at: day(4), attempt: 3, nextRetryAt: day(6), isRetryUnknown: false }];
    expect(numbers({ dunning: third })).toEqual([1, 3]);
    expect(numbers({ sales: [], dunning: third })).toEqual([3]);
    expect(numbers({ sales: [], dunning: [] })).toEqual([1]);
  });

  test("what an earlier attempt said of its retry says nothing of the last one", () => {
    expect(nextRetryAfter(order(), 2)).toBe("unknown");
    expect(nextRetryAfter(order(), 1)).toEqual(day(2));
  });
});

describe("advice", () => {
  test.each([
    ["do_not_honor", "soft", /^Nothing to do yet\. The service retries/],
    ["incorrect_cvv", "card_data", /ask for another card.*no documented way/],
    ["blocked_card", "account_status", /call the bank/],
    ["lost_stolen_card", "fraud", /Do not charge again. Give no access/],
    ["duplicate_transaction", "configuration", /Page engineering/],
    ["something_new", "unknown", /documentation does not list/],
  ])("%s is %s", (code, group, advice) => {
    expect(declineGroupOf(code)).toBe(group);
    const sales = [{ status: "failed", at: day(1), failureCode: code }];
    const [timeline] = declineTimelines(order({ sales }), context);
    expect(timeline?.stages.at(-1)?.advice).toMatch(advice);
  });

  test("every documented code has a group", () => {
    expect(failureCodes.filter((code) => declineGroupOf(code) === "unknown")).toEqual([]);
  });
});

describe("a first fill", () => {
  test.each([
    ["an old lost renewal", { dunning: said(null) }, day(20), false],
    ["one of yesterday", { dunning: said(null) }, day(2), true],
    ["live dunning", { dunning: said(day(21)) }, day(20), true],
    ["what was paid", { payments: [{ at: day(2), failedAgainAt: null }], sales: [] }, day(2), false],
  ])("%s", (_name, fields, now, expected) => {
    const timeline = declineTimelines(order(fields), context)[0]!;
    expect(timeline === null ? null : isNews(timeline, "import", now)).toBe(expected);
    expect(timeline === null ? null : isNews(timeline, "event", now)).toBe(true);
  });
});

describe("silence and storms", () => {
  const hour = (iso: string, events: number) => ({ hour: new Date(iso), events });
  const rule = { usuallyAtLeast: 10, weeks: 4 };
  const busy = ["2026-03-02T10:00Z", "2026-03-09T10:00Z"].map((iso) => hour(iso, 10));

  test.each([
    ["a usually busy hour without events", busy, true],
    ["… with one", [...busy, hour("2026-03-16T10:00Z", 1)], false],
    ["… and the next one has begun with one", [...busy, hour("2026-03-16T11:00Z", 1)], false],
    ["busy in one week only", busy.slice(1), false],
    ["seldom enough events", busy.map(({ hour: at }) => ({ hour: at, events: 9 })), false],
    ["nothing known", [], false],
  ])("%s", (_name, hours, expected) => {
    const settings = settingsOf({}).rules.silence_events;
    const silent = hourWithoutEvents(hours, { ...settings, ...rule }, new Date("2026-03-16T11:20:00Z"), "UTC");
    expect(silent?.toISOString() ?? null).toBe(expected ? "2026-03-16T10:00:00.000Z" : null);
  });

  const mondays = (time: string) => ["02", "09", "16", "23"].map((day) => hour(`2026-03-${day}T${time}Z`, 10));

  test.each([
    [
      "a job by the clock of Berlin that came an hour earlier",
      [...mondays("01:00"), hour("2026-03-30T00:00Z", 10)],
      null,
    ],
    [
      "nothing, in an hour that is busy by either clock",
      [...mondays("01:00"), ...mondays("02:00")],
      new Date("2026-03-30T01:00Z"),
    ],
  ])("after the clocks have changed: %s", (_name, hours, expected) => {
    const silent = hourWithoutEvents(
      hours,
      { ...settingsOf({}).rules.silence_events, ...rule },
      new Date("2026-03-30T02:20:00Z"),
      "Europe/Berlin",
    );
    expect(silent).toEqual(expected);
  });

  test("a storm is a multiple of what is usual, and never less than the least", () => {
    const settings = settingsOf({ rules: { decline_storm: { factor: 3, atLeast: 20 } } });
    expect([null, 2, 30].map((usual) => usualLimit(settings, "declines", usual))).toEqual([20, 20, 90]);
  });
});

describe("what a message shows", () => {
  test.each([
    [2_900, "usd", "29.00 USD"],
    [5, "eur", "0.05 EUR"],
    [-1_234, "kwd", "-1.234 KWD"],
    [700, "jpy", "700 JPY"],
    [700, "zzz", "700 minor units of ZZZ"],
  ])("%i %s", (amount, currency, text) => {
    expect(moneyText(amount, currency)).toBe(text);
  });

  test.each([
    ["ada.lovelace@example.com", "a…@e….com"],
    ["x@y.museum", "x…@y….museum"],
    ["[redacted]", "(hidden)"],
    ["no address", "(hidden)"],
  ])("%s as %s", (email, masked) => {
    expect(maskedEmail(email)).toBe(masked);
  });
});

test("of paid orders nothing is looked at but their ids", () => {
  const states = [
    { group: "order", id: "o", json: '{"status":"succeeded"}', columns: { status: "succeeded" } },
    {
      group: "transaction.inline",
      id: "t",
      json: '{"status":"succeeded"}',
      columns: { type: "sale" },
    },
    { group: "customer", id: "c", json: "{}", columns: {} },
  ];
  const { declinedOrders, disputed, unknownValues, orders } = affectedBy(states);
  expect([declinedOrders.size, disputed.size, unknownValues.size, [...orders]]).toEqual([0, 0, 0, ["o"]]);
});

test("a sum of alerts says how many amounts it does not know, of one alert each and of many", () => {
  const known = { amountMinor: 1_000n, currency: "usd" };
  const unknown = { amountMinor: null, currency: "usd" };
  expect(sumTexts([known, unknown, unknown])).toEqual(["10.00 USD", "2 unknown amounts"]);
  expect(sumTexts([{ ...known, alerts: 5, unknown: 2 }])).toEqual(["10.00 USD", "2 unknown amounts"]);
  expect(sumTexts([known])).toEqual(["10.00 USD"]);
});
