import { createHash } from "node:crypto";
import { strFromU8, unzipSync } from "fflate";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readAudit } from "../../src/app/people/audit.ts";
import { apply, sampleCustomer, sampleEntry, sampleOrder, shown } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
beforeAll(async () => {
  dashboard = await openDashboard(database);
});
afterAll(() => dashboard.close());

/** The stand's clock shows 12:00 on 22 November. */
const days = (n: number): string => new Date(Date.UTC(2026, 10, 22, 12) + n * 86_400_000).toISOString();

interface Sold {
  customer?: string;
  /** In days from now. */
  soldOn?: number;
  status?: string;
  card?: { id: string; card_last_four: string; card_brand: string };
  address?: object | null;
  order?: object;
}

const visa = { id: "pm-1", card_last_four: "4242", card_brand: "visa" };
const home = {
  first_name: "Jane",
  last_name: "Doe",
  address_line1: "1 Private Road",
  city: "Smalltown",
  postal_code: "12345",
  country: "US",
};

async function sold(id: string, sale: Sold = {}): Promise<void> {
  const { customer = "jane", soldOn = -40, status = "succeeded", card = visa } = sale;
  const { address = home, order = {} } = sale;
  const saleStatus = status.startsWith("chargeback") ? "chargeback" : "succeeded";
  const state = (now: string, at: string) =>
    shown(
      "order",
      sampleOrder({
        id,
        order_number: id.toUpperCase(),
        customer_id: customer,
        status: now,
        payment_method: card,
        shipping_address: address,
        items: [{ id: `${id}-item`, product_id: "tea", name: "Green tea", quantity: 2, price: 500 }],
        transactions: [
          sampleEntry({
            id: `${id}-sale`,
            status: now === "succeeded" ? "succeeded" : saleStatus,
            created_at: days(soldOn),
            updated_at: at,
          }),
        ],
        created_at: days(soldOn),
        updated_at: at,
        ...order,
      }),
    );
  await apply(database.db, state("succeeded", days(soldOn)));
  if (status === "succeeded") return;
  await apply(database.db, state("chargeback", days(-10)));
  if (status !== "chargeback") await apply(database.db, state(status, days(-2)));
}

async function page(path: string, cookie: string): Promise<string> {
  const answer = await send(`${dashboard.url}${path}`, { cookie });
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.text();
}

const textOf = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();

async function zipOf(id: string, cookie: string): Promise<{ bytes: Buffer; files: Record<string, string> }> {
  const answer = await send(`${dashboard.url}/chargebacks/${id}/evidence.zip`, { cookie });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/zip"]);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const files = Object.entries(unzipSync(bytes)).map(([name, data]) => [name, strFromU8(data)]);
  return { bytes, files: Object.fromEntries(files) as Record<string, string> };
}

beforeAll(async () => {
  const customer = sampleCustomer({ id: "jane", last_name: "Doe", phone: "+15550100" });
  await apply(database.db, shown("customer", customer));
  await sold("disputed", { status: "chargeback" });
  await sold("won", { status: "chargeback_dismissed", customer: "joe" });
  await sold("lost", { status: "chargeback_accepted", customer: "joe" });
  await sold("early1", { soldOn: -200 });
  await sold("early2", {
    soldOn: -300,
    card: { ...visa, id: "pm-2" },
    address: { ...home, city: "Smalltown " },
  });
  await sold("early3", { soldOn: -60, address: null });
  await sold("early4", {
    soldOn: -200,
    card: { id: "pm-9", card_last_four: "1111", card_brand: "visa" },
  });
  await sold("later", { soldOn: -5 });
  await sold("strange", { soldOn: -200, customer: "joe" });
});

describe("the list", () => {
  test("has what is to answer with its age", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const text = textOf(await page("/chargebacks", cookie));
    expect(text).toMatch(/Up to two weeks 1 10\.00 USD/);
    expect(text).toMatch(/Order DISPUTED 10\.00 USD visa 10 days since 2026-11-12 12:00 UTC unassigned/);
    expect(text).not.toMatch(/Jane|Doe/);
  });

  test("has the networks' thresholds once they are summed up", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    await vi.waitFor(
      async () => expect(await page("/chargebacks", cookie)).toContain("This month against each network"),
      { timeout: 10_000 },
    );
  });

  test("draws this month's chargebacks against each threshold", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    await vi.waitFor(
      async () =>
        expect(await page("/chargebacks", cookie)).toMatch(/<title id="thresholds-0-title">[^]*visa VAMP \d+ of \d+/),
      { timeout: 10_000 },
    );
  });

  test("has how others ended on a page of its own", async () => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const text = textOf(await page("/chargebacks?show=ended", cookie));
    expect(text).toMatch(/last twelve months: 2 chargebacks .* visa USD 1 10\.00 USD 1 10\.00 USD 50 %/);
    expect(text).toMatch(/Order (WON|LOST) 10\.00 USD visa (won|lost) 2026-11-20/);
    expect(text).not.toMatch(/DISPUTED|Jane|Doe/);
  });

  test("names customers to whoever may see them, and records it", async () => {
    const { cookie, email } = await signedIn(database.db, ["support"]);
    expect(await page("/chargebacks", cookie)).toContain("Jane Doe");
    const acts = await readAudit(database.db, { actor: email, limit: 5 });
    expect(acts.map(({ action, subject }) => [action, subject?.id])).toEqual([["person.read", "/chargebacks"]]);
  });

  test.each(["who=mine", "snoozed=only"])("shows by the address what is asked for: %s", async (query) => {
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const text = await page(`/chargebacks?${query}`, cookie);
    expect(text).not.toContain("DISPUTED");
    expect(text).toContain("No open chargeback matches");
  });
});

describe("a chargeback's own page", () => {
  test("has amounts, what to do, what happened, and who looks after it", async () => {
    const { cookie } = await signedIn(database.db, ["finance"]);
    const text = textOf(await page("/chargebacks/disputed", cookie));
    expect(text).toContain("Answer by the service does not say: look it up there");
    expect(text).toContain("Send proof of the sale before it");
    expect(text).toMatch(/What happened .* succeeded .* chargeback/);
    expect(text).toContain("Assignment");
    expect(text).not.toMatch(/Jane|Doe|4242|Evidence/);
  });

  test("is not there for a sale that nobody disputed", async () => {
    const { cookie } = await signedIn(database.db, ["support"]);
    for (const id of ["early1", "nothing", "%2e%2e%2f"]) {
      for (const what of ["", "/evidence", "/evidence.zip"]) {
        const { status } = await send(`${dashboard.url}/chargebacks/${id}${what}`, { cookie });
        expect([id, what, status]).toEqual([id, what, 404]);
      }
    }
  });

  test("takes an assignment and a note", async () => {
    const { cookie, email } = await signedIn(database.db, ["support"]);
    const html = await page("/chargebacks/won", cookie);
    const me = /name="assignee" value="(\d+)"/.exec(html)?.[1] ?? "";
    const url = `${dashboard.url}/chargebacks/won`;
    const assigned = await send(`${url}/assign`, {
      cookie,
      form: { "decided-on": "0", assignee: me },
    });
    expect(assigned.status).toBe(303);
    expect((await send(`${url}/note`, { cookie, form: { text: "sent it" } })).status).toBe(303);
    expect(textOf(await page("/chargebacks/won", cookie))).toMatch(new RegExp(`Assigned to ${email} .*sent it`));
  });
});

describe("the evidence", () => {
  test("has the sale, and earlier sales of the customer that nobody disputed, with what they have in common", async () => {
    const { cookie } = await signedIn(database.db, ["support"]);
    const text = textOf(await page("/chargebacks/disputed/evidence", cookie));
    expect(text).toContain("Name Jane Doe E-mail jane@example.com Phone +15550100");
    expect(text).toContain("Jane Doe 1 Private Road Smalltown 12345 US");
    expect(text).toContain("Green tea tea 2");
    const compared = text.slice(text.indexOf("Earlier undisputed"), text.indexOf("Visa's Compelling"));
    expect(compared).toMatch(
      /EARLY3 .* 50 10\.00 USD yes no no EARLY1 .* 190 10\.00 USD yes yes yes EARLY4 .* 190 10\.00 USD no yes no EARLY2 .* 290 10\.00 USD yes yes yes/,
    );
    expect(compared).not.toMatch(/LATER|STRANGE|DISPUTED/);
  });

  test("says where a list goes on beyond what it shows, on the page and in its data", async () => {
    const entry = (n: number) => sampleEntry({ id: `long-${String(n).padStart(3, "0")}`, created_at: days(-30) });
    const transactions = Array.from({ length: 201 }, (_, n) => entry(n));
    await sold("long", { customer: "patient", status: "chargeback", order: { transactions } });
    const { cookie } = await signedIn(database.db, ["support"]);
    const { files } = await zipOf("long", cookie);
    expect(files["evidence.html"]).toContain("Payments and refunds: the first 200, there are more");
    expect(files["evidence.html"]).not.toContain("What happened:");
    const { transactions: shownOnes, cut } = JSON.parse(files["evidence.json"] ?? "");
    expect([shownOnes.length, cut]).toEqual([200, ["transactions"]]);
  });

  test("as a ZIP has the same bytes each time, with sums of its files, and is recorded with its hash", async () => {
    const { cookie, email } = await signedIn(database.db, ["support"]);
    const first = await zipOf("disputed", cookie);
    dashboard.clock.set(new Date("2026-11-22T15:00:00Z"));
    const second = await zipOf("disputed", cookie);
    dashboard.clock.set(new Date("2026-11-22T12:00:00Z"));
    expect(second.bytes.equals(first.bytes)).toBe(true);
    const { SHA256SUMS: sums = "", ...files } = first.files;
    expect(Object.keys(files).sort()).toEqual([
      "earlier-orders.csv",
      "evidence.html",
      "evidence.json",
      "items.csv",
      "timeline.csv",
      "transactions.csv",
    ]);
    for (const [name, text] of Object.entries(files)) {
      expect(sums).toContain(`${createHash("sha256").update(text).digest("hex")}  ${name}\n`);
    }
    const sha256 = createHash("sha256").update(first.bytes).digest("hex");
    const acts = await readAudit(database.db, { actor: email, action: "evidence.made", limit: 5 });
    expect(acts.map(({ subject, after }) => [subject, after])).toEqual([
      [
        { kind: "chargeback", id: "disputed" },
        { format: "zip", sha256 },
      ],
      [
        { kind: "chargeback", id: "disputed" },
        { format: "zip", sha256 },
      ],
    ]);
  });

  test("is made by nobody who may not see who customers are", async () => {
    const { cookie } = await signedIn(database.db, ["finance", "viewer", "operator", "admin"]);
    for (const what of ["evidence", "evidence.zip"]) {
      const { status } = await send(`${dashboard.url}/chargebacks/disputed/${what}`, { cookie });
      expect(status).toBe(403);
    }
  });

  test("takes what customers and shops wrote for text, in every file", async () => {
    const evil = `=HYPERLINK("https://evil.example")<script>alert(1)</script>\u202e`;
    await apply(
      database.db,
      shown("customer", sampleCustomer({ id: "mallory", first_name: evil, last_name: "x".repeat(10_000) })),
    );
    await sold("../evil", {
      customer: "mallory",
      status: "chargeback",
      order: {
        order_number: evil,
        description: evil,
        items: [{ product_id: "@SUM(1)", name: evil, quantity: 1, price: { amount: 5 } }],
      },
    });
    const { cookie } = await signedIn(database.db, ["support"]);
    const id = encodeURIComponent("../evil");
    for (const path of ["/chargebacks", `/chargebacks/${id}`, `/chargebacks/${id}/evidence`]) {
      const text = await page(path, cookie);
      expect(text).toContain("&lt;script&gt;");
      expect(text).not.toMatch(/<script>|\u202e|x{500}/);
    }
    const { files } = await zipOf(id, cookie);
    expect(files["items.csv"]).toContain(`,'@SUM(1),"'=HYPERLINK(`);
    expect(files["items.csv"]).not.toContain("\u202e");
    expect(files["evidence.html"]).not.toMatch(/<script>|\u202e/);
    expect(JSON.parse(files["evidence.json"] ?? "")).toMatchObject({
      order: { description: evil },
    });
    const answer = await send(`${dashboard.url}/chargebacks/${id}/evidence.zip`, { cookie });
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="evidence-.._evil.zip"');
  });
});

test("home says how many are to answer, and that nobody has them", async () => {
  const { cookie } = await signedIn(database.db, ["viewer"]);
  const text = textOf(await page("/", cookie));
  expect(text).toMatch(/chargebacks? to answer without an assignee: the oldest is open for 10 days/);
  expect(text).toMatch(/\d to answer Disputed \d+\.00 USD The oldest open for 10 days/);
});

test("more open chargebacks than a page has go on, the oldest first, until all were shown", async () => {
  for (let n = 0; n < 60; n++) await sold(`many-${n}`, { status: "chargeback" });
  const { cookie } = await signedIn(database.db, ["viewer"]);
  const seen: string[] = [];
  let path: string | undefined = "/chargebacks";
  for (let pages = 0; path !== undefined && pages < 5; pages++) {
    const html = await page(path, cookie);
    expect(html.includes("Up to two weeks")).toBe(pages === 0);
    seen.push(...[...textOf(html).matchAll(/Order (MANY-\d+|DISPUTED)/g)].map(([, name]) => name ?? ""));
    path = /rel="next" href="([^"]*)"/.exec(html)?.[1]?.replaceAll("&amp;", "&");
  }
  expect(path).toBeUndefined();
  expect(new Set(seen).size).toBe(61);
  expect(seen).toHaveLength(61);
});
