import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readAudit } from "../../src/app/people/audit.ts";
import { apply, sampleCustomer, sampleEntry, sampleOrder, sampleSubscription, shown } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
beforeAll(async () => {
  dashboard = await openDashboard(database);
});
afterAll(() => dashboard.close());

/** The stand's clock shows 12:00 on 22 November. */
const hours = (n: number): string => new Date(Date.UTC(2026, 10, 22, 12) + n * 3_600_000).toISOString();

interface Renewal {
  attempts?: number;
  /** In hours from now; null: none follows. */
  retryIn?: number | null;
  code?: string;
  total?: number;
  currency?: string;
  customer?: object;
}

/** What the events and reads of a declined renewal leave in the mirror. */
async function declined(id: string, renewal: Renewal = {}): Promise<void> {
  const { attempts = 1, retryIn = 72, code = "insufficient_funds", total = 1_000 } = renewal;
  const { currency = "usd", customer = {} } = renewal;
  const created = hours(-24 * attempts);
  const sales = Array.from({ length: attempts }, (_, n) =>
    sampleEntry({
      id: `${id}-sale-${n}`,
      status: "failed",
      amount: total,
      currency,
      attempt_count: n + 1,
      failure_code: code,
      created_at: hours(-24 * (attempts - n)),
      updated_at: hours(-24 * (attempts - n)),
    }),
  );
  await apply(
    database.db,
    shown("customer", sampleCustomer({ id: `${id}-customer`, email: `${id}@example.com`, ...customer })),
    shown("subscription", sampleSubscription({ id: `${id}-sub`, customer_id: `${id}-customer`, status: "past_due" })),
    shown(
      "order",
      sampleOrder({
        id,
        order_number: id.toUpperCase(),
        customer_id: `${id}-customer`,
        status: "failed",
        failure_code: code,
        subtotal: total,
        discount_amount: 0,
        total,
        currency,
        subscription_id: `${id}-sub`,
        subscription_cycle: 3,
        attempt_count: attempts,
        next_retry_at: retryIn === null ? null : hours(retryIn),
        transactions: sales,
        payment_method: { id: "card-1", card_last_four: "4242", card_brand: "visa" },
        created_at: created,
        updated_at: hours(-1),
      }),
    ),
  );
}

async function page(path: string, cookie: string): Promise<string> {
  const answer = await send(`${dashboard.url}${path}`, { cookie });
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.text();
}

/** What stands on the board in a stage, without markup. */
function column(html: string, stage: string): string {
  const [, after = ""] = html.split(`aria-labelledby="stage-${stage}"`);
  return textOf(after.split("</section>")[0] ?? "");
}

const textOf = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();

const decidedOn = (html: string): string => /name="decided-on" value="(\d+)"/.exec(html)?.[1] ?? "";

const post = (path: string, cookie: string, form: Record<string, string>) =>
  send(`${dashboard.url}${path}`, { cookie, form });

describe("the board", () => {
  beforeAll(async () => {
    await declined("first1");
    await declined("retrying2", { attempts: 2, code: "expired_card" });
    await declined("last3", { attempts: 3, retryIn: 11, total: 700 });
    await declined("final4", { attempts: 4, retryIn: null, currency: "eur", total: 5_000 });
  });

  test("has each renewal in its stage, with what it is about and what to do", async () => {
    const { cookie } = await signedIn(database.db, ["support"]);
    const board = await page("/dunning", cookie);
    expect(column(board, "first")).toMatch(
      /10\.00 USD Order FIRST1 .*Jane insufficient funds .*1 attempt Next retry in 3 days .*Nothing to do yet unassigned/,
    );
    expect(column(board, "retrying")).toMatch(/RETRYING2 .*card expired .*Ask for another card/);
    expect(column(board, "last-retry")).toMatch(/LAST3 .*in 11 hours .*Write to the customer/);
    expect(column(board, "final")).toMatch(/50\.00 EUR Order FINAL4 .*none follows .*Collect another way, or cancel/);
    expect(column(board, "recovered")).toContain("0");
  });

  test("is followed by the declines of each week, by what became of them", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    await vi.waitFor(
      async () =>
        expect(textOf(await page("/dunning", cookie))).toMatch(
          /Renewals by the week of their first decline .* 4 renewals were first declined in 12 weeks: 0 recovered, 4 in progress, 0 lost/,
        ),
      { timeout: 10_000 },
    );
  });

  test("names nobody to a viewer, neither there nor on a renewal's own page", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    for (const path of ["/dunning", "/dunning/last3"]) {
      const text = await page(path, cookie);
      expect(text).toContain("LAST3");
      expect(text).not.toMatch(/Jane|last3@|4242/);
      expect(text).not.toContain("/assign");
    }
  });

  test("records that somebody was shown who customers are", async () => {
    const { cookie, email } = await signedIn(database.db, ["support"]);
    await page("/dunning", cookie);
    expect(await page("/dunning/last3", cookie)).toMatch(/Jane[\s\S]*last3@[\s\S]*visa •••• 4242/);
    const acts = await readAudit(database.db, { actor: email, limit: 10 });
    expect(acts.map(({ action, subject }) => [action, subject?.id])).toEqual([
      ["person.read", "last3"],
      ["person.read", "/dunning"],
    ]);
  });

  test.each([
    ["stage=final", ["FINAL4"]],
    ["currency=eur", ["FINAL4"]],
    ["group=card_data", ["RETRYING2"]],
    ["sort=amount&group=soft", ["FINAL4", "FIRST1", "LAST3"]],
    ["who=mine", []],
  ])("shows by the address what is asked for: %s", async (query, expected) => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const text = textOf(await page(`/dunning?${query}`, cookie));
    expect((text.match(/Order [A-Z]+\d/g) ?? []).map((name) => name.slice(6)).sort()).toEqual(expected);
  });

  test("says which filter cannot be read, and shows no renewal", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const answer = await send(`${dashboard.url}/dunning?stage=nonsense&sort=amount`, { cookie });
    const text = await answer.text();
    expect([answer.status, /Order [A-Z]+\d/.test(textOf(text))]).toEqual([400, false]);
    expect(text).toMatch(/<p[^>]* id="stage-problem">“nonsense” is not one of first,/);
    expect(text).not.toContain('id="sort-problem"');
  });

  test("shows who has a renewal, and what rests; filters find both", async () => {
    const { cookie, email } = await signedIn(database.db, ["support"]);
    const own = decidedOn(await page("/dunning/first1", cookie));
    const me = /name="assignee" value="(\d+)"/.exec(await page("/dunning/first1", cookie))?.[1] ?? "";
    const assigned = await post("/dunning/first1/assign", cookie, {
      "decided-on": own,
      assignee: me,
    });
    expect([assigned.status, assigned.headers.get("location")]).toEqual([303, "/dunning/first1"]);
    const snoozed = await post("/dunning/first1/snooze", cookie, { "decided-on": "1", days: "3" });
    expect(snoozed.status).toBe(303);

    expect(column(await page("/dunning?who=mine", cookie), "first")).toMatch(
      /with you snoozed until 2026-11-25 00:00 UTC/,
    );
    const other = await signedIn(database.db, ["viewer"]);
    expect(column(await page("/dunning?snoozed=only", other.cookie), "first")).toContain(`with ${email}`);
    expect(await page("/dunning?who=unassigned", other.cookie)).not.toContain("FIRST1");
    expect(await page("/dunning?snoozed=hide", other.cookie)).not.toContain("FIRST1");
  });

  test("loses a renewal that is paid, or whose subscription is canceled, and says what was recovered", async () => {
    await declined("paid5", { attempts: 2 });
    await declined("canceled6");
    const { cookie } = await signedIn(database.db, ["viewer"]);
    expect(column(await page("/dunning", cookie), "retrying")).toContain("PAID5");
    expect(column(await page("/dunning", cookie), "first")).toContain("CANCELED6");

    const sale = sampleEntry({ id: "paid5-sale-9", created_at: hours(0), updated_at: hours(0) });
    const paid = { id: "paid5", order_number: "PAID5", status: "succeeded", failure_code: null };
    await apply(
      database.db,
      shown(
        "order",
        sampleOrder({
          ...paid,
          subscription_id: "paid5-sub",
          subscription_cycle: 3,
          transactions: [sale],
          updated_at: hours(0),
        }),
      ),
      shown(
        "subscription",
        sampleSubscription({
          id: "canceled6-sub",
          status: "canceled",
          canceled_at: hours(0),
          updated_at: hours(0),
        }),
      ),
    );
    const board = await page("/dunning", cookie);
    expect(column(board, "retrying")).not.toContain("PAID5");
    expect(column(board, "recovered")).toMatch(/PAID5 .*Paid 2026-11-22 12:00 UTC/);
    expect(board).not.toContain("CANCELED6");
    expect(textOf(await page("/dunning/canceled6", cookie))).toContain("its subscription ended, or it was voided");
  });

  test("takes names that a customer chose for text, whatever is in them", async () => {
    await declined("hostile7", {
      code: "<b>new_code</b>",
      customer: { first_name: `"><script>alert(1)</script>\u202e`, last_name: "x".repeat(10_000) },
    });
    const { cookie } = await signedIn(database.db, ["support"]);
    for (const path of ["/dunning", "/dunning/hostile7"]) {
      const text = await page(path, cookie);
      expect(text).toContain("&lt;script&gt;");
      expect(text).not.toMatch(/<script>|<b>|\u202e|x{301}/);
    }
  });
});

describe("a renewal's own page", () => {
  test("has the attempts and the advice that the alert gives", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const text = textOf(await page("/dunning/last3", cookie));
    expect(text).toContain("their account had too little money. The service retries this card one last");
    expect(text).toMatch(/Attempts .* 1 2026-11-19 12:00 UTC declined: insufficient funds – 2 .* 3 /);
  });

  test.each(["nobody", "order-1%2F.."])("is not there for %s", async (id) => {
    const { cookie } = await signedIn(database.db, ["support"]);
    expect((await send(`${dashboard.url}/dunning/${id}`, { cookie })).status).toBe(404);
    expect((await post(`/dunning/${id}/note`, cookie, { text: "x" })).status).toBe(404);
  });
});

describe("the form of a case", () => {
  beforeAll(() => declined("case8"));

  test("that was filled in on an earlier state changes nothing, and shows who changed what", async () => {
    const [ada, bob] = [
      await signedIn(database.db, ["support"], { email: "ada@example.com" }),
      await signedIn(database.db, ["support"], { email: "bob@example.com" }),
    ];
    const seenByBob = decidedOn(await page("/dunning/case8", bob.cookie));
    const me = /name="assignee" value="(\d+)"/.exec(await page("/dunning/case8", ada.cookie))?.[1] ?? "";
    await post("/dunning/case8/assign", ada.cookie, { "decided-on": seenByBob, assignee: me });
    await post("/dunning/case8/snooze", ada.cookie, { "decided-on": "1", until: "2026-12-01" });

    const late = await post("/dunning/case8/assign", bob.cookie, {
      "decided-on": seenByBob,
      assignee: "nobody",
    });
    expect(late.status).toBe(409);
    expect(textOf(await late.text())).toMatch(
      /ada@example\.com snoozed it until 2026-12-01 00:00 UTC .*ada@example\.com assigned it to ada@example\.com .*Look at it again/,
    );
    expect(textOf(await page("/dunning/case8", bob.cookie))).toContain("Assigned to ada@example.com");
  });

  test.each<[string, Record<string, string>]>([
    ["assign", { assignee: "999999" }],
    ["assign", {}],
    ["snooze", { until: "2026-11-22" }],
    ["snooze", { until: "2030-01-01" }],
    ["snooze", { days: "9999" }],
    ["snooze", {}],
    ["note", { text: "  " }],
    ["note", { text: "x".repeat(2_001) }],
  ])("of %s refuses what it cannot take, %#", async (what, form) => {
    const { cookie } = await signedIn(database.db, ["support"]);
    const version = decidedOn(await page("/dunning/case8", cookie));
    const answer = await post(`/dunning/case8/${what}`, cookie, { "decided-on": version, ...form });
    expect(answer.status).toBe(400);
  });

  test("takes a note, which is shown to whoever may see customers, and else only that there is one", async () => {
    const support = await signedIn(database.db, ["support"], { email: "writer@example.com" });
    await post("/dunning/case8/note", support.cookie, {
      text: "called <b>Jane</b>\r\nno answer",
    });
    const text = await page("/dunning/case8", support.cookie);
    expect(text).toContain("called &lt;b&gt;Jane&lt;/b&gt;\nno answer");
    const acts = await readAudit(database.db, {
      actor: support.email,
      action: "notes.read",
      limit: 5,
    });
    expect(acts).toHaveLength(1);

    const finance = await signedIn(database.db, ["finance"]);
    const hidden = await page("/dunning/case8", finance.cookie);
    expect(hidden).toContain("writer@example.com");
    expect(hidden).not.toContain("called");
    expect(hidden).toContain("/dunning/case8/note");
  });
});

test("home says what is at stake, what falls due today, and what nobody looks after", async () => {
  const { cookie } = await signedIn(database.db, ["viewer"]);
  const text = textOf(await page("/", cookie));
  expect(text).toMatch(/1 renewal without an assignee: the last retry is within 48 hours/);
  expect(text).toMatch(/1 renewal with no retry left and without an assignee/);
  expect(text).toMatch(/At stake 50\.00 EUR .* USD Falls due today 7\.00 USD/);
});
