import { readSearch } from "../../src/parts/browse/objects/search.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import { markErased } from "../../src/core/mirror/privacy/erased-people.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { emptyMirror } from "../mirror/copies.ts";
import {
  apply,
  at,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  seen,
  shown,
} from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let support: string;
let viewer: string;
let lastAct: string;

beforeAll(async () => {
  dashboard = await openDashboard(database);
  support = (await signedIn(database.db, ["support"])).cookie;
  viewer = (await signedIn(database.db, ["viewer"])).cookie;
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  await emptyMirror(database.db);
  await emptyTables(database.db, ["mirror.unbelieved", "mirror.erasures"]);
  const newest = await database.db("people.audit").max<{ id: string | null }[]>("id as id");
  lastAct = newest[0]?.id ?? "0";
});

const card = { id: "pm-1", card_brand: "visa", card_last_four: "4242" };

async function open(path: string, cookie = support): Promise<{ status: number; text: string }> {
  const answer = await send(`${dashboard.url}${path}`, { cookie });
  return { status: answer.status, text: await answer.text() };
}

const find = (q: string, cookie = support, more: Record<string, string> = {}): Promise<Response> =>
  send(`${dashboard.url}/objects/search`, { cookie, form: { q, ...more } });

/** What this test did, the newest first. */
const acts = (action: string) =>
  database.db("people.audit").where({ action }).where("id", ">", lastAct).orderBy("id", "desc").select("*");

const byEvent = (snapshot: Snapshot, seq: number): Snapshot => ({
  ...snapshot,
  cause: `event:${seq}`,
});

test.each([
  ['"ord_1"', "ord_1"],
  [" 'ord_1', ", "ord_1"],
  ["`ord_1`.", "ord_1"],
  ["“ord_1”", "ord_1"],
  ["<jane@example.com>;", "jane@example.com"],
  ["\t#A-1001\u00a0", "A-1001"],
  ['"4242"', "4242"],
  ['""', ""],
])("what a paste brings along is left out: %j is %j", (typed, text) => {
  expect(readSearch(typed).text).toBe(text);
});

describe("search", () => {
  test.each([
    ["an id", "order-1", "/objects/order/order-1"],
    ["an id in capitals", "ORDER-1", "/objects/order/order-1"],
    ["an order number", "AB12CD34", "/objects/order/order-1"],
    ["an order number in small letters, as customers write it", " #ab12cd34 ", "/objects/order/order-1"],
    ["an e-mail address in any case", "JANE@Example.com", "/objects/customer/customer-1"],
    ["the last four digits of a card", "4242", "/objects/order/order-1"],
    ["a transaction's id", "sale-1", "/objects/transaction/sale-1"],
    ["the beginning of an id", "customer", "/objects/customer/customer-1"],
    ["a name", "Jane", "/objects/customer/customer-1"],
    ["first and last name in either order", "DOE, jane", "/objects/customer/customer-1"],
    ["the beginning of an e-mail address", "jane@exam", "/objects/customer/customer-1"],
  ])("by %s leads straight to the one object", async (_, q, to) => {
    await apply(
      database.db,
      shown("order", sampleOrder({ payment_method: card, transactions: [sampleEntry()] })),
      shown("customer", sampleCustomer({ last_name: "Doe" })),
    );
    const answer = await find(q);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, to]);
  });

  test("by an event's number leads to the event, by digits only where no order has that number", async () => {
    const seq = await storeRow(database.db, { type: "order.paid", resourceId: "order-1" });
    const digits = String(seq).padStart(5, "0");
    expect((await find(`event ${seq}`, viewer)).headers.get("location")).toBe(`/events/${seq}`);
    expect((await find(digits, viewer)).headers.get("location")).toBe(`/events/${seq}`);
    await apply(database.db, shown("order", sampleOrder({ order_number: digits })));
    expect((await find(digits, viewer)).headers.get("location")).toBe("/objects/order/order-1");
  });

  test("names customer, product and card, and what looks charged twice, to those who may see people", async () => {
    const items = ["Black tea", "Cup", "Sieve"].map((name) => ({ product_id: "p1", name, quantity: 1 }));
    const tea = sampleOrder({ payment_method: card, items });
    await apply(
      database.db,
      shown("customer", sampleCustomer({ last_name: "Doe" })),
      shown("order", tea),
      shown("order", { ...tea, id: "order-2", order_number: "AB12CD35", created_at: at(2) }),
    );
    const plain = wordsOf(await (await find("4242")).text());
    const order = (number: string, second: number) =>
      `Jane Doe Order ${number} Same amount and card, 2 s apart Paid 10.00 USD Black tea +2 visa 4242 2025-03-01 12:00:0${second} UTC`;
    expect(plain).toContain(order("AB12CD35", 2));
    expect(plain).toContain(order("AB12CD34", 0));
    const seen =
      wordsOf(await (await find("order-", viewer)).text()) + wordsOf(await (await find("customer", viewer)).text());
    expect(seen).not.toMatch(/jane|doe|black tea|4242/i);
  });

  test("keeps what was typed in its field", async () => {
    expect(await (await find(" #none-such ")).text()).toContain('value="#none-such"');
  });

  test("lists several, the newest first, and goes on after the last of a page", async () => {
    const orders = Array.from({ length: 60 }, (_, n) =>
      shown(
        "order",
        sampleOrder({
          id: `order-${n}`,
          order_number: `N${n}`,
          payment_method: card,
          created_at: at(n),
        }),
      ),
    );
    await apply(database.db, ...orders);
    const first = await (await find("4242")).text();
    expect(first.match(/href="\/objects\/order\/order-\d+"/g)).toHaveLength(50);
    expect(first).toMatch(/order-59"[\s\S]*order-10"/);
    expect(first).toContain('name="after" value="order-10"');
    expect(first).toContain("visa");
    const second = await (await find("4242", support, { after: "order-10" })).text();
    expect(second.match(/href="\/objects\/order\/order-\d+"/g)).toHaveLength(10);
    expect(second).not.toContain("order-10<");
  });

  test("by what is personal is recorded with its kind and its hits, not with what was searched", async () => {
    await apply(database.db, shown("customer", sampleCustomer()));
    await find("jane@example.com");
    await find("9876");
    await find("Jane Nobody");
    const rows = await acts("person.searched");
    expect(rows.map(({ after }) => after)).toEqual([
      { by: "name", hits: 0 },
      { by: "last four digits", hits: 0 },
      { by: "e-mail address", hits: 1 },
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/jane|9876/i);
  });

  test("by what is personal finds nothing for somebody without person:read", async () => {
    await apply(
      database.db,
      shown("order", sampleOrder({ payment_method: card })),
      shown("customer", sampleCustomer()),
    );
    const refused = await find("jane@example.com", viewer);
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("person:read");
    const digits = await find("4242", viewer);
    expect(digits.status).toBe(200);
    expect(await digits.text()).toContain("Nothing was found");
    const name = await find("Jane", viewer);
    expect(name.status).toBe(200);
    expect(await name.text()).toContain("Nothing was found");
  });

  test("of nothing, and an empty mirror, say how to begin", async () => {
    expect((await find("  ")).headers.get("location")).toBe("/objects");
    const { text } = await open("/objects");
    expect(text).toContain("Nothing has changed yet");
    expect(text).toContain("node src/bin/tallyhook.js trigger order.paid");
  });

  test("begins with what changed last", async () => {
    await apply(database.db, shown("order", sampleOrder()));
    const { text } = await open("/objects", viewer);
    expect(text).toContain("Order paid");
    expect(text).toContain("/objects/order/order-1");
    expect(text).not.toContain("jane@");
  });
});

describe("the page of an object", () => {
  test("says its state in words and money, and leads to what belongs to it", async () => {
    await apply(
      database.db,
      shown(
        "order",
        sampleOrder({
          subscription_id: "subscription-1",
          transactions: [
            sampleEntry({ status: "chargeback" }),
            sampleEntry({ id: "refund-1", type: "refund", amount: 300 }),
          ],
          status: "chargeback",
          items: [{ product_id: "p1", name: "Beans", quantity: 2 }],
        }),
      ),
      shown("customer", sampleCustomer()),
      shown("subscription", sampleSubscription()),
    );
    const order = (await open("/objects/order/order-1")).text;
    expect(order).toContain("Charged back");
    expect(order).toContain("10.00 USD");
    expect(order).toContain("jane@example.com");
    expect(order).toMatch(/2 ×\s+<bdi [^>]*>Beans/);
    for (const path of [
      "customer/customer-1",
      "subscription/subscription-1",
      "transaction/sale-1",
      "transaction/refund-1",
      "chargeback/order-1",
    ]) {
      expect(order).toContain(`href="/objects/${path}"`);
      expect((await open(`/objects/${path}`)).status, path).toBe(200);
    }
    const customer = (await open("/objects/customer/customer-1")).text;
    expect(customer).toContain('href="/objects/order/order-1"');
    expect(customer).toContain('href="/objects/subscription/subscription-1"');
    expect((await open("/objects/subscription/subscription-1")).text).toContain('href="/objects/order/order-1"');
  });

  test("is titled by what a person says of it, and by numbers and ids for those who may not see people", async () => {
    await apply(
      database.db,
      shown("customer", sampleCustomer({ last_name: "Doe" })),
      shown("order", sampleOrder({ items: [{ product_id: "p1", name: "Beans", quantity: 2 }] })),
      shown("subscription", sampleSubscription()),
    );
    const titleOf = async (path: string, cookie: string): Promise<string> => {
      const { text } = await open(`/objects/${path}`, cookie);
      const [title = "", heading] = [/<title>(.*) –/.exec(text)?.[1], /<h1>(.*)<\/h1>/.exec(text)?.[1]];
      expect(heading).toBe(title);
      return title;
    };
    expect(await titleOf("customer/customer-1", support)).toBe("Jane Doe");
    expect(await titleOf("customer/customer-1", viewer)).toBe("Customer customer-1");
    expect(await titleOf("order/order-1", support)).toBe("Order AB12CD34: 10.00 USD, Jane Doe, Beans");
    expect(await titleOf("order/order-1", viewer)).toBe("Order AB12CD34: 10.00 USD");
    expect(await titleOf("subscription/subscription-1", support)).toBe("Subscription Monthly: 9.00 USD, Jane Doe");
    expect(await titleOf("subscription/subscription-1", viewer)).not.toContain("Jane");
  });

  test("says of a customer and of each order what looks charged twice, and leads to the other order", async () => {
    await apply(
      database.db,
      shown("customer", sampleCustomer()),
      shown("order", sampleOrder({ payment_method: card })),
      shown("order", sampleOrder({ id: "order-2", order_number: "AB12CD35", payment_method: card, created_at: at(2) })),
      shown("order", sampleOrder({ id: "order-3", status: "failed", payment_method: card, created_at: at(3) })),
    );
    const customer = wordsOf((await open("/objects/customer/customer-1")).text);
    expect(customer.match(/Same amount and card, 2 s apart/g)).toHaveLength(3);
    expect(customer).toContain("Charged 20.00 USD in 2 paid orders");
    const order = (await open("/objects/order/order-1", viewer)).text;
    expect(wordsOf(order)).toContain("10.00 USD: this order and AB12CD35. Same amount and card, 2 s apart");
    expect(order).toContain('href="/objects/order/order-2"');
    expect((await open("/objects/order/order-3")).text).not.toContain("double charge");
  });

  test("shows ten of what belongs to it, and all of them page by page", async () => {
    await apply(
      database.db,
      shown("customer", sampleCustomer()),
      ...Array.from({ length: 55 }, (_, n) =>
        shown("order", sampleOrder({ id: `order-${n}`, order_number: `N${n}`, total: n, created_at: at(n) })),
      ),
    );
    const links = /href="\/objects\/order\/order-\d+"/g;
    const { text } = await open("/objects/customer/customer-1");
    expect(text.match(links)).toHaveLength(10);
    expect(text).toContain('href="/objects/customer/customer-1/orders"');
    const all = (await open("/objects/customer/customer-1/orders", viewer)).text;
    expect(all.match(links)).toHaveLength(50);
    const rest = (await open("/objects/customer/customer-1/orders?before=order-5", viewer)).text;
    expect(rest.match(links)).toHaveLength(5);
  });

  test("shows no viewer who it is about, in no part of it, and records who saw it", async () => {
    const personal = {
      description: "Secret description",
      failure_reason: "Secret reason",
      metadata: { secret_key: "Secret value" },
      payment_method: { ...card, card_last_four: "9999" },
      shipping_address: { first_name: "Secretly", city: "Secretville" },
    };
    await apply(
      database.db,
      shown("order", sampleOrder({ ...personal, status: "failed", failure_code: "do_not_honor" })),
      shown("order", sampleOrder({ ...personal, updated_at: at(9), description: "Secret two" })),
      shown("customer", sampleCustomer({ last_name: "Secretson" })),
      shown("customer", sampleCustomer({ last_name: "Secretdotter", updated_at: at(9) })),
    );
    for (const path of ["/objects/order/order-1", "/objects/customer/customer-1"]) {
      for (const of of [path, `${path}?stop=1`, `${path}?as-of=2100-01-01T00:00`]) {
        const { text } = await open(of, viewer);
        expect(text, of).not.toMatch(/secret|jane|9999/i);
        expect(text, of).toContain("requires person:read");
      }
    }
    const seenByViewer = (await open("/objects/order/order-1", viewer)).text;
    expect(seenByViewer).toContain("10.00 USD");
    expect(seenByViewer).toContain("Paid");
    expect(await acts("person.read")).toEqual([]);
    const { text } = await open("/objects/customer/customer-1");
    expect(text).toContain("Secretdotter");
    expect(text).toContain("jane@example.com");
    const rows = await acts("person.read");
    expect(rows).toMatchObject([{ subject_kind: "customer", subject_id: "customer-1" }]);
    expect(JSON.stringify(rows)).not.toMatch(/secret/i);
  });

  test("shows a person who was erased as erased, also to support", async () => {
    await markErased(database.db, "customer-1");
    await apply(
      database.db,
      shown("customer", sampleCustomer({ last_name: "Secretson" })),
      shown("order", sampleOrder({ description: "For Secretson" })),
    );
    for (const path of ["/objects/order/order-1", "/objects/customer/customer-1"]) {
      const { text } = await open(path);
      expect(text).toContain("The person was erased on request");
      expect(text).toContain("erased</span>");
      expect(text).not.toMatch(/jane|secretson/i);
    }
  });

  test("survives hostile texts: markup, reversed writing, controls, ten thousand characters", async () => {
    const script = '<script>alert(1)</script>"><img src=x onerror=alert(2)>';
    const long = "x".repeat(10_000);
    await apply(
      database.db,
      shown(
        "customer",
        sampleCustomer({
          first_name: script,
          last_name: "\u202egnp.exe\u0007",
          company: long,
          metadata: { [script]: script, [long]: 1 },
        }),
      ),
      shown("order", sampleOrder({ order_number: script, currency: "<b>", description: long, status: script })),
    );
    for (const path of ["/objects/customer/customer-1", "/objects/order/order-1", "/objects"]) {
      const { status, text } = await open(path);
      expect(status).toBe(200);
      expect(text).not.toMatch(/<script>alert|<img src=x|<b>/);
      expect(text).not.toContain("\u0007");
      expect(text).not.toContain("x".repeat(400));
    }
    expect((await open("/objects/customer/customer-1")).text).toMatch(/<bdi [^>]*>\ufffdgnp/);
  });

  test.each(["a/b", "100%", "50%25", "?x=1&y=2#z", "ü ñ", '"><script>', "..%2f"])(
    "takes the id %s, from lists and from its address",
    async (id) => {
      await apply(database.db, shown("order", sampleOrder({ id })));
      const path = `/objects/order/${encodeURIComponent(id)}`;
      expect((await find(id)).headers.get("location")).toBe(path);
      const { status, text } = await open(path);
      expect([id, status]).toEqual([id, 200]);
      expect(text).not.toContain("<script>");
      expect((await open("/objects")).text).toContain(path);
    },
  );

  test.each([
    ["/objects/order/none", "Check the id"],
    ["/objects/chargeback/none", "has the id of its order"],
    ["/objects/banana/none", "Search for the object"],
    ["/objects/order/%E0%A4%A", ""],
    ["/objects/order/order-1/bananas", "no page at this address"],
  ])("%s is not found, and says what to do", async (path, says) => {
    const { status, text } = await open(path);
    expect([400, 404]).toContain(status);
    expect(text).toContain(says);
  });
});

describe("an event that could not be applied", () => {
  const about = (id: string, state: "failed" | "dead") =>
    storeRow(database.db, { type: "order.paid", resourceType: "order", resourceId: id, state });

  test("is named on the page of its object; of many the newest are", async () => {
    await apply(database.db, shown("order", sampleOrder()));
    const dead = await about("order-1", "dead");
    const { text } = await open("/objects/order/order-1", viewer);
    expect(text).toContain(`href="/events/${dead}"`);
    expect(wordsOf(text)).toContain("order.paid, received");
    expect(wordsOf(text)).toContain("it could not be applied, and is no longer retried");
    for (let n = 0; n < 3; n++) await about("order-1", "failed");
    const many = (await open("/objects/order/order-1", viewer)).text;
    expect(wordsOf(many)).not.toContain("is not tried any more");
    expect(wordsOf(many)).toContain("4 things are not right here");
    expect(wordsOf(many)).toContain("More of its events were not applied");
    expect((await open("/objects/order/order-1?as-of=2001-01-01T00:00", viewer)).text).not.toContain("not applied");
  });

  test("is named where nothing else is known of its object", async () => {
    const failed = await about("order-9", "failed");
    const { status, text } = await open("/objects/order/order-9", viewer);
    expect(status).toBe(404);
    expect(wordsOf(text)).toContain("its events could not be applied");
    expect(text).toContain(`href="/events/${failed}"`);
  });
});

describe("the timeline and the blame", () => {
  test("say which state won each field, since when, what came late, and what it changed", async () => {
    const { db } = database;
    const [created, late, paid] = [
      await storeRow(db, { type: "order.created", resourceId: "order-1" }),
      await storeRow(db, { type: "order.failed", resourceId: "order-1" }),
      await storeRow(db, { type: "order.paid", resourceId: "order-1" }),
    ];
    await apply(db, byEvent(shown("order", sampleOrder({ status: "pending" })), created));
    await apply(db, byEvent(shown("order", sampleOrder({ updated_at: at(60) })), paid));
    const failed = { status: "failed", failure_code: "do_not_honor", updated_at: at(30) };
    await apply(db, byEvent(shown("order", sampleOrder(failed)), paid + 1));
    const { text } = await open("/objects/order/order-1", viewer);
    const plain = wordsOf(text);
    expect(plain).toContain("failed → succeeded");
    expect(plain).toContain("do_not_honor → none");
    expect(plain).toMatch(
      /failed from event \d+, which was removed since, of 2025-03-01 12:00 UTC: it came late\. A state of 2025-03-01 12:01 UTC was known already/,
    );
    expect(plain).toMatch(/total 10\.00 USD 2025-03-01 12:00 UTC event \d+ \(order\.created\)/);
    expect(text).toContain(`href="/events/${created}"`);
    expect(late).toBeLessThan(paid);
  });

  test("tell a tie that the rank decided from one that a read decided", async () => {
    const { db } = database;
    await apply(db, byEvent(shown("order", sampleOrder({ status: "refunded" })), 1));
    await apply(db, byEvent(shown("order", sampleOrder({ status: "succeeded" })), 2));
    expect(wordsOf((await open("/objects/order/order-1", viewer)).text)).toContain(
      "the other's status comes later for an order",
    );
    await apply(db, seen("order", sampleOrder({ status: "succeeded" }), 60));
    const plain = wordsOf((await open("/objects/order/order-1", viewer)).text);
    expect(plain).toContain("a later read of the service showed the other");
    expect(plain).toContain("status succeeded");
  });

  test("show what was dated in the future, what was healed over, and a row that a hand has edited", async () => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder()));
    await apply(db, {
      ...shown("order", sampleOrder({ status: "failed", updated_at: at(86_400) })),
      receivedAt: canonicalTimestamp(at(0)),
    });
    await db.raw("update mirror.orders set total = 1 where id = 'order-1'");
    await db("mirror.heals").insert({
      resource: "order",
      id: "order-1",
      healed_by: "ann",
      reason: "<i>wrong</i>",
      after_sha256: "",
      changed_columns: ["total"],
    });
    const { text } = await open("/objects/order/order-1", viewer);
    const plain = wordsOf(text);
    expect(plain).toContain("dated more than an hour after it arrived");
    expect(plain).toContain("edited by hand: total");
    expect(plain).toContain("Healed by ann");
    // What people write may name a customer.
    expect(text).not.toContain("wrong");
    const read = (await open("/objects/order/order-1", support)).text;
    expect(read).toContain("&lt;i&gt;wrong&lt;/i&gt;");
  });

  test("keep what only events tell of retries apart from what a read shows", async () => {
    const { db } = database;
    const declined = sampleOrder({ status: "failed", attempt_count: 2, next_retry_at: at(9_000) });
    await apply(db, byEvent(shown("order", declined), 7));
    await apply(db, seen("order", sampleOrder({ status: "failed", updated_at: at(50) }), 60));
    const plain = wordsOf((await open("/objects/order/order-1", viewer)).text);
    expect(plain).toMatch(/attempt_count 2 2025-03-01 12:00 UTC event 7/);
    expect(plain).toContain("retries, as events tell them");
  });

  test("go back page by page through many states", async () => {
    const { db } = database;
    for (let n = 0; n < 60; n++) {
      await apply(db, shown("order", sampleOrder({ total: n, updated_at: at(n) })));
    }
    const first = (await open("/objects/order/order-1", viewer)).text;
    const entries = (text: string) => text.match(/Past<|Shown now</g)?.length;
    expect(entries(first)).toBe(25);
    const older = /\?before=([^"#]+)#timeline/.exec(first)?.[1] ?? "";
    const second = (await open(`/objects/order/order-1?before=${older}`, viewer)).text;
    expect(entries(second)).toBe(25);
    expect(wordsOf(second)).toContain("0.33 USD → 0.34 USD");
    const last = /\?before=([^"#]+)#timeline" *>? *Older|rel="next" href="[^"]*before=([^"#]+)/.exec(second);
    const third = (await open(`/objects/order/order-1?before=${last?.[1] ?? last?.[2]}`, viewer)).text;
    expect(entries(third)).toBe(10);
    expect(third).not.toContain('rel="next"');
  });
});

describe("the past", () => {
  test("is shown as it was known then, marked as past, by a moment or a time", async () => {
    const { db } = database;
    await apply(db, byEvent(shown("order", sampleOrder({ status: "pending" })), 1));
    await db.transaction(async (trx) => {
      // The first state was learned an hour ago.
      await trx.raw("select set_config('tallyhook.erasure', 'on', true)");
      await trx.raw("update mirror.versions set recorded_at = recorded_at - interval '1 hour'");
    });
    await apply(db, byEvent(shown("order", sampleOrder({ updated_at: at(60) })), 2));
    const path = "/objects/order/order-1";
    const now = (await open(path, viewer)).text;
    expect(now).toContain('type="range"');
    expect(now).toContain('max="2"');
    expect(now).not.toContain("This is the past");
    const link = new RegExp(`href="(${path}\\?as-of=[^"]+)"`).exec(now)?.[1] ?? "";
    for (const of of [`${path}?stop=1`, link]) {
      const { text } = await open(of, viewer);
      expect(text, of).toContain("This is the past");
      expect(wordsOf(text)).toContain("status pending");
      expect(text).not.toContain("Paid");
    }
    const before = await open(`${path}?as-of=2001-01-01T00:00`, viewer);
    expect(before.text).toContain("No state of it was ever accepted");
    expect((await open(`${path}?as-of=yesterday`, viewer)).status).toBe(400);
  });
});

/** The text of a page as a person reads it. */
const wordsOf = (page: string): string =>
  page
    .replaceAll(/<span class="hidden">[^<]*<\/span>/g, "")
    .replaceAll(/<wbr[^>]*>|<\/?bdi[^>]*>/g, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ([,.:)])/g, "$1")
    .replaceAll("( ", "(");
