import type { Knex } from "knex";
import { clear, raise } from "../../../src/parts/alerts/raise-conditions.ts";
import { beginSilence } from "../../../src/parts/alerts/silences.ts";
import { noSubject } from "../../../src/parts/alerts/timeline.ts";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { registerAlerts } from "../../../src/parts/alerts/cli/alerts.ts";
import { registerCustomers } from "../../../src/main/cli/customers.ts";
import { deliver, oneByOne } from "../../alerts/timeline-stand.ts";
import { standingClock, sweep } from "../../alerts/sweep-stand.ts";
import { settingsOf, testAlertContext } from "../../alerts/test-alert-context.ts";
import { sampleCustomer, sampleOrder } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyAll } from "../../worker/worker-stand.ts";
import { type CommandRun, runCommand } from "./command-line.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});

const env = () => ({ DATABASE_URL: database.url });
const alerts = (...args: string[]): Promise<CommandRun> =>
  runCommand(registerAlerts, ["alerts", ...args], { env: env() });
const json = async (...args: string[]): Promise<unknown> => JSON.parse((await alerts(...args, "--json")).out);

const card = { id: "card-1", card_last_four: "4242", card_brand: "visa" };
const event = (type: string, object: object) => ({
  id: crypto.randomUUID(),
  type,
  created_at: "2025-03-01T12:00:00.000Z",
  data: { object },
});

beforeEach(async () => {
  await emptyAll(db);
  await emptyTables(db, ["mirror.erasures"]);
  const declined = { status: "failed", failure_code: "expired_card", payment_method: card };
  const disputed = { id: "order-2", status: "chargeback", customer_id: "customer-2" };
  const events = [
    event("customer.created", sampleCustomer()),
    event("order.failed", sampleOrder({ ...declined, transactions: [] })),
    event("order.chargeback", sampleOrder({ ...disputed, transactions: [] })),
  ];
  await deliver(db, atOnce, oneByOne(events));
});

/** What can wait for the day's list is told by itself. */
const atOnce = testAlertContext({ settings: settingsOf({ digests: { when: "off" } }) });

describe("alerts", () => {
  test("list shows what is not resolved, and filters", async () => {
    const { out } = await alerts("list");
    expect(out).toContain("All alerts: open 2, acknowledged 0, resolved 0.");
    const keysOf = async (...args: string[]) =>
      ((await json("list", ...args)) as { alerts: { key: string }[] }).alerts.map(({ key }) => key);
    expect(await keysOf()).toEqual(["chargeback:order-2", "decline:order-1"]);
    expect(await keysOf("--rule", "decline")).toEqual(["decline:order-1"]);
    expect(await keysOf("--severity", "critical")).toEqual(["chargeback:order-2"]);
    expect(await keysOf("--state", "resolved")).toEqual([]);
  });

  test.each([
    [["list", "--rule", "declin"], 'Did you mean "decline"?'],
    [["list", "--state", "closed"], "Use one of open,"],
    [["list", "--severity", "criticl"], 'Did you mean "critical"?'],
    [["list", "--limit", "0"], "Use a whole number from 1 to 10000."],
  ])("%j is refused with words", async (args, words) => {
    const { err } = await alerts(...args);
    expect(err).toContain(words);
  });

  test("show tells the life and the messages, by number and by key", async () => {
    const { out } = await alerts("show", "decline:order-1");
    expect(out).toContain("10.00 USD order AB12CD34 declined: card expired");
    expect(out).toContain("What to do: Tell the customer that this card cannot be charged");
    expect(out).toMatch(/opened +attempt:1 +event/);
    expect(await json("show", "1")).toMatchObject({
      key: "decline:order-1",
      history: [{ change: "opened", stage: "attempt:1" }],
      messages: [{ channel: "log", action: "trigger", state: "sent" }],
    });
    const { error } = await alerts("show", "999");
    expect(String(error)).toContain('There is no alert "999".');
  });

  test("show tells of a place on the day's list", async () => {
    const lost = {
      id: "order-9",
      status: "failed",
      failure_code: "do_not_honor",
      subscription_id: "subscription-9",
      subscription_cycle: 2,
      attempt_count: 4,
      next_retry_at: null,
      transactions: [],
    };
    await deliver(db, testAlertContext(), [[event("order.failed", sampleOrder(lost))]]);
    const show = async () => (await alerts("show", "dunning:subscription-9:2")).out;
    expect(await show()).toMatch(/log +digest +final +waits for the next list/);
    await db("alerts.digest_items").update({ told_at: "2026-03-02T08:00:00.000Z" });
    expect(await show()).toMatch(/log +digest +final +listed 2026-03-02T08:00:00\.000Z/);
    expect(await show()).toContain("What to do: No retry follows.");
  });

  test("ack takes an alert once, tells the channels, and refuses what is over", async () => {
    expect((await alerts("ack", "1", "--by", "ada", "--note", "calling her")).out).toBe(
      "Alert 1 is acknowledged by ada.\n",
    );
    expect((await alerts("ack", "1", "--by", "bob")).out).toBe("Alert 1 was acknowledged already.\n");
    expect(await json("show", "1")).toMatchObject({
      state: "acknowledged",
      acknowledged_by: "ada",
      acknowledged_note: "calling her",
      messages: [{ action: "trigger" }, { action: "acknowledge", message: { stage: "acknowledged" } }],
    });
    const dismissed = { id: "order-2", status: "chargeback_dismissed", customer_id: "customer-2" };
    const order = sampleOrder({
      ...dismissed,
      updated_at: "2025-03-02T12:00:00.000Z",
      transactions: [],
    });
    await deliver(db, testAlertContext(), [[event("order.chargeback_dismissed", order)]]);
    const { error } = await alerts("ack", "chargeback:order-2");
    expect(String(error)).toContain("is resolved, so there is nothing to acknowledge");
  });

  test("silence holds back the messages of an alert or a rule, silences lists them, unsilence ends one", async () => {
    const begun = await alerts("silence", "decline:order-1", "--by", "ada", "--reason", "deploy");
    expect(begun.out).toMatch(/^Silence 1: messages of decline:order-1 wait until \d{4}-.*Z, those up to warning\./);
    expect(await json("silence", "--rule", "chargeback", "--hours", "1", "--by", "ada")).toMatchObject({
      rule: "chargeback",
      up_to_severity: "critical",
      is_in_force: true,
    });
    expect((await alerts("list")).out).toContain("silenced");
    expect(await json("silences")).toMatchObject({
      silences: [{ rule: "chargeback" }, { key: "decline:order-1", reason: "deploy" }],
    });
    expect((await alerts("silences")).out).toContain("the rule chargeback");
    expect((await alerts("unsilence", "1", "--by", "bob")).out).toContain("Silence 1 has ended");
    expect((await alerts("unsilence", "1", "--by", "bob")).out).toContain("was over already");
    expect(await json("silences", "--all")).toMatchObject({
      silences: [{ rule: "chargeback" }, { key: "decline:order-1", ended_by: "bob" }],
    });
    expect(await db("people.audit").where("action", "like", "silence.%").orderBy("id").pluck("action")).toEqual([
      "silence.begun",
      "silence.begun",
      "silence.ended",
    ]);
    expect(String((await alerts("unsilence", "99", "--by", "bob")).error)).toContain(`no silence "99"`);
    expect(String((await alerts("silence", "--by", "bob")).error)).toContain("Name an alert, or a rule");
    expect((await alerts("silence", "1", "--reason", "two\nlines")).err).toContain("one line of text");
  });

  test("resend has what was given up sent again, of one alert or one channel, and nothing else", async () => {
    const states = () => db("alerts.outbox").orderBy("id").pluck("state");
    const failed = { state: "failed", attempts: 400, last_error: "gone" };
    await db("alerts.outbox").update(failed);
    expect(await json("resend", "decline:order-1")).toEqual({ messages: { log: 1 } });
    expect(await db("alerts.outbox").orderBy("id").select("state", "attempts", "last_error")).toEqual([
      { state: "pending", attempts: 0, last_error: null },
      failed,
    ]);
    await db("alerts.outbox").where("state", "failed").update({ created_at: "2025-03-01" });
    expect((await alerts("resend", "--channel", "log")).out).toBe("No message of the last 72 hours was given up.\n");
    await db("alerts.outbox").update({ created_at: db.fn.now() });
    expect((await alerts("resend", "--channel", "log")).out).toContain("send again: log 1.");
    expect(await states()).toEqual(["pending", "pending"]);
    await db("alerts.outbox").update({ state: "sent" });
    expect(await json("resend", "--channel", "log")).toEqual({ messages: {} });
    expect(await states()).toEqual(["sent", "sent"]);
    const refusals: [string[], string][] = [
      [["resend"], "Name an alert"],
      [["resend", "--channel", "lgo"], `Did you mean "log"`],
      [["resend", "decline:nobody"], 'There is no alert "decline:nobody"'],
      [["resend", "999999"], 'There is no alert "999999"'],
    ];
    for (const [args, words] of refusals) {
      expect(String((await alerts(...args)).error)).toContain(words);
    }
  });
});

test("customers erase takes the person out of messages, and alerts hold none", async () => {
  const all = async () =>
    JSON.stringify([await db("alerts.outbox"), await db("alerts.alerts"), await db("alerts.history")]);
  expect(await all()).toContain("j…@e….com");
  expect(await all()).toContain("4242");
  const erase = ["customers", "erase", "customer-1", "--yes", "--by", "ada", "--json"];
  const { out } = await runCommand(registerCustomers, erase, { env: env() });
  expect(JSON.parse(out)).toMatchObject({ counts: { alerts: 1, messages: 1 } });
  expect(await all()).not.toMatch(/j…@|4242|jane/i);
  expect(await all()).toContain("[redacted]");
});

test("customers erase takes out why an alert about the person was silenced, and no other reason", async () => {
  const reason = "she moved abroad";
  for (const key of ["decline:order-1", "chargeback:order-2"]) {
    await beginSilence(db, { of: { key }, upTo: "error", hours: 1, by: "ada", reason });
  }
  const erase = ["customers", "erase", "customer-1", "--yes", "--by", "ada"];
  expect((await runCommand(registerCustomers, erase, { env: env() })).error).toBeNull();
  const reasons = await db("alerts.silences").orderBy("id").pluck("reason");
  expect(reasons).toEqual(["[redacted]", reason]);
});

test("customers erase takes out the notes of alerts that are about the person, or name them, and no others", async () => {
  await deliver(db, testAlertContext(), [
    [event("customer.created", sampleCustomer({ last_name: "Doe" }))],
    [event("order.created", sampleOrder({ order_number: "87654321" }))],
  ]);
  const raiseOne = (key: string, kept: object, subject?: object) =>
    db.transaction((trx) =>
      raise(
        trx,
        testAlertContext(),
        [
          {
            key,
            rule: "event_dead",
            severity: "error",
            title: "something",
            advice: "",
            facts: [],
            storedFacts: { ...kept },
            ...(subject === undefined ? {} : { subject: { ...noSubject, ...subject } }),
            at: new Date(),
          },
        ],
        "sweep",
      ),
    );
  const notes: [key: string, note: string, isRedacted: boolean, kept?: object, subject?: object][] = [
    ["ended", "she wrote", true, {}, { orderId: "order-1" }],
    ["object", "he wrote", true, { resource: "customer", id: "customer-1" }],
    ["mail", "wrote to JANE@example.com.", true],
    ["name", "called Jane Doe: no answer", true],
    ["order", "order 87654321, again", true],
    ["amount", "87654321 JPY at risk, or 87654321.50", false],
    ["other-id", "see customer-12 and x-customer-1", false],
    ["first-name", "Jane from support looks at it", false],
  ];
  for (const [key, note, , kept = {}, subject] of notes) {
    await raiseOne(key, kept, subject);
    expect((await alerts("ack", key, "--by", "bob", "--note", note)).error).toBeNull();
  }
  // Over, and its note stays with it.
  await db.transaction((trx) =>
    clear(trx, testAlertContext(), [{ key: "ended", end: { title: "over", advice: "" }, at: new Date() }], "sweep"),
  );
  const erase = ["customers", "erase", "customer-1", "--yes", "--by", "ada"];
  expect((await runCommand(registerCustomers, erase, { env: env() })).error).toBeNull();
  for (const [key, note, isRedacted] of notes) {
    const row = await db("alerts.alerts").where({ key }).first<{ id: string; acknowledged_note: string }>();
    const told = JSON.stringify([
      row,
      await db("alerts.history").where({ alert_id: row.id }),
      await db("alerts.outbox").where({ alert_id: row.id }),
    ]);
    expect([key, told.includes(note)]).toEqual([key, !isRedacted]);
    expect(row.acknowledged_note).toBe(isRedacted ? "[redacted]" : note);
  }
});

test("customers erase takes the person out of the day's lists, and leaves the others there", async () => {
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({ clock });
  const order = (n: number) => {
    const lost = { status: "failed", failure_code: "do_not_honor", attempt_count: 4 };
    const of = { id: `order-1${n}`, customer_id: `customer-${n}`, order_number: `NUMBER${n}` };
    const renewal = { subscription_id: `subscription-${n}`, subscription_cycle: 2 };
    return sampleOrder({ ...lost, ...of, ...renewal, next_retry_at: null, transactions: [] });
  };
  await deliver(db, alertContext, [
    [event("customer.created", sampleCustomer({ id: "customer-3", email: "zoe@there.org" }))],
    [event("order.failed", order(1)), event("order.failed", order(3))],
  ]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  const titles = async () => {
    const [message] = await db("alerts.outbox")
      .whereNull("alert_id")
      .pluck<{ items: { title: string }[] }[]>("message");
    return message?.items.map(({ title }) => title).toSorted();
  };
  const title = (person: string) => `LOST 10.00 USD renewal, ${person}: 4 attempts declined. Collect or cancel`;
  expect(await titles()).toEqual([title("j…@e….com"), title("z…@t….org")]);
  const erase = ["customers", "erase", "customer-1", "--yes", "--by", "ada", "--json"];
  await runCommand(registerCustomers, erase, { env: env() });
  expect(await titles()).toEqual([title("z…@t….org"), "[redacted]"]);
});
