import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { strFromU8, unzipSync } from "fflate";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { registerClose } from "../../../src/parts/reports/cli/close.ts";
import { recordBeat } from "../../../src/core/receiver/heartbeats.ts";
import { unpaidRenewals } from "../../../src/core/mirror/dunning/renewals.ts";
import type { Role } from "../../../src/app/people/permissions.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { runCommand } from "../../main/cli/command-line.ts";
import { type Deliveries, startDeliveries } from "../../reconcile/deliveries.ts";
import { chromiumAvailable, firefoxPath } from "../../support/chromium.ts";
import { applyDeps, poisonOrder } from "../../worker/worker-stand.ts";
import { aCustomer, aSubscription, anOrder } from "../../sandbox/harness.ts";
import { type DashboardStand, openDashboard, signedIn } from "../dashboard-stand.ts";
import { reconcileAll } from "../fill-database.ts";
import { useFilledDatabase } from "../filled-database.ts";
import { type Person, personAt, spaced } from "./person-at.ts";
import { type WatchedPage, useBrowser } from "./use-browser.ts";

/**
 * What people do with the dashboard from beginning to end, each with a browser of their own, by what they see: links,
 * buttons and fields. One goes on where the one before it ended, and the last finds who did all that.
 */
describe.skipIf(!chromiumAvailable)("with the dashboard, in Chromium", () => {
  stories("chromium");
});
describe.skipIf(firefoxPath === null)("with the dashboard, in Firefox", () => {
  stories("firefox");
});

function stories(engine: "chromium" | "firefox"): void {
  const database = useFilledDatabase();
  const browser = useBrowser({ engine });
  let dashboard: DashboardStand;
  let service: Deliveries;
  const opened: WatchedPage[] = [];

  beforeAll(async () => {
    dashboard = await openDashboard(database, { service: database.service });
    let isNew = false;
    service = startDeliveries(database.db, database.sandbox, () => !isNew);
    await service.deliver();
    isNew = true;
  });
  afterEach(() => {
    const complaints = opened
      .flatMap((each) => each.complaints())
      // What becomes a download is no page any more.
      .filter((text) => !/\/(bundle|evidence\.zip) net::ERR_ABORTED$/.test(text));
    if (complaints.length > 0) throw new Error(complaints.join("\n"));
  });
  afterAll(async () => {
    for (const each of opened) await each.close();
    await dashboard.close();
  });

  /** Somebody who has signed in and sees home. */
  async function comes(email: string, role: Role): Promise<Person> {
    const { cookie } = await signedIn(database.db, [role], {
      email,
      now: dashboard.clock.now(),
    });
    const watched = await browser.open({ url: dashboard.url, cookie });
    opened.push(watched);
    await watched.go("/");
    return personAt(watched.page);
  }

  /** Some days later, with all that the service did by itself, and announced, meanwhile. */
  async function days(n: number): Promise<void> {
    const { clock } = await database.sandbox.control("POST", "/clock", {
      advance_seconds: n * 86_400 + 60,
    });
    dashboard.clock.set(new Date(clock.now));
    await service.deliver();
  }

  /** How many pages a person has been led to since. */
  function clicksOf({ page }: Person): () => number {
    let clicks = 0;
    page.on("framenavigated", () => (clicks += 1));
    return () => clicks;
  }

  /** What was done, for the auditor: by whom, the act, and the address of the page of what it was done to. */
  const done: { by: string; act: string; on: string; page: string | RegExp | null }[] = [];

  test("whoever is on call finds a failed event, understands it, and replays it with a preview", async () => {
    const { db, sandbox } = database;
    const [order] = await db("mirror.orders")
      .where({ status: "succeeded", subscription_id: null })
      .orderBy("created_at", "desc")
      // The newest has an event that waits already.
      .offset(1)
      .limit(1)
      .pluck("id");
    const mended = await poisonOrder(db, order);
    await sandbox.ok("POST", `/v1/orders/${order}/refund`);
    await service.deliver();

    const lin = await comes("lin@example.com", "operator");
    await lin.opens("Events");
    await lin.writes("Object", order);
    await lin.presses("Show");
    expect(await lin.reads()).toContain("known once it has been applied");
    await lin.follows("failed", "Events");
    const seq = await lin.main.locator("tbody tr").first().locator("td a").first().innerText();
    await lin.follows(seq, `Event ${seq}`);
    expect(await lin.reads()).toMatch(/attempt 1: database error 23514 A rule of the mirror's tables/);
    expect(await lin.reads()).toContain(`"id": "${order}"`);
    await lin.follows("Preview a replay…", `Replay event ${seq}?`);
    expect(await lin.reads()).toMatch(/It would fail: .*Fix the cause first/);

    await mended();
    await lin.reloads();
    expect(await lin.reads()).toMatch(/It would become applied .*status succeeded/);
    await lin.presses(`Replay event ${seq}`, `Event ${seq}`);
    expect(await lin.reads()).toContain("Put back.");
    await applyBatch({ ...applyDeps(db), isClockMovable: true }, [Number(seq)]);
    await lin.reloads();
    expect(await lin.reads()).toMatch(/Applied .*It changed the mirror/);
    await lin.follows("order", /^Order /);
    expect(await lin.reads()).toMatch(/refund/i);
    done.push({ by: "lin@example.com", act: "event.replayed", on: seq, page: `Event ${seq}` });
  });

  test("support takes on a declined renewal, snoozes it, and need not look again when it is paid", async () => {
    const { db, sandbox } = database;
    const customer = await aCustomer(sandbox, "card_renewal_declined_once");
    const plan = "box-daily-usd";
    const { id: subscription } = await aSubscription(sandbox, customer, { plan });
    await days(1);
    const renewals = await unpaidRenewals(db, { now: dashboard.clock.now(), limit: 50 });
    const renewal = renewals.find(({ subscriptionId }) => subscriptionId === subscription);
    const name = `Order ${renewal?.orderNumber}`;

    const ada = await comes("ada@example.com", "support");
    await ada.opens("Dunning");
    await ada.follows(name, /./);
    await ada.presses("Assign to me");
    expect(await ada.reads()).toMatch(/Assigned to ada@example\.com\. .*Assigned to ada@example\.com/);
    await ada.presses("For 3 days");
    expect(await ada.reads()).toContain("Snoozed until 2026-11-26");
    await ada.opens("Dunning");
    await ada.chooses("Assigned to", "me");
    await ada.presses("Show");
    expect(await ada.column("Recovered this month")).not.toContain(name);
    expect(await ada.reads()).toMatch(new RegExp(`${name} .*with you snoozed until 2026-11-26`));

    await days(1);
    const next = await comes("ada@example.com", "support");
    await next.opens("Dunning");
    expect(await next.column("Recovered this month")).toContain(name);
    expect((await next.reads()).split(name)).toHaveLength(2);
    done.push({
      by: "ada@example.com",
      act: "case.changed",
      on: renewal?.orderId ?? "",
      page: /./,
    });
  });

  test("whoever is on call finds a drifted order by its number, sees why, and heals it with a preview", async () => {
    const { db, sandbox } = database;
    const [order] = await db("mirror.orders")
      .where({ status: "succeeded", subscription_id: null })
      .whereNotIn("id", db("reconcile.findings").whereNotNull("object_id").select("object_id"))
      .whereNotIn("id", db("inbox.progress").where("state", "failed").whereNotNull("resource_id").select("resource_id"))
      .orderBy("created_at", "desc")
      .limit(1)
      .select("id", "order_number", "total");
    const total = Number(order.total) + 700;
    await sandbox.control("POST", "/silent", { resource: "orders", id: order.id, set: { total } });
    await reconcileAll(db, sandbox.url, { kinds: ["full"], reportOnly: true });

    const lin = await comes("lin@example.com", "operator");
    const [before, after] = [order.total, total].map((minor) => (minor / 100).toFixed(2));
    const titled = new RegExp(`^Order ${order.order_number}: `);
    await lin.searches(order.order_number, titled);
    expect(await lin.reads()).toContain("1 thing is not right here");
    await lin.follows(/^Finding \d+$/, /^Finding \d+$/);
    expect(await lin.reads()).toMatch(new RegExp(`total .*${before} .*${after} `));
    await lin.follows("Why its fields have their values", titled);
    const blame = lin.main.getByRole("region", { name: "Fields" }).getByRole("row");
    const ofTotal = blame.filter({ has: lin.page.getByText("total", { exact: true }) });
    expect(spaced(await ofTotal.innerText())).toMatch(
      new RegExp(`total .*${before} .*(event|reconciliation run) \\d+`),
    );
    await lin.follows("Compare with the service and heal", "Mirror and service now");
    expect(await lin.reads()).toMatch(new RegExp(`total .*${before} .*${after} `));
    await lin.writes("Why; name no customer", "the service changed it without an event");
    await lin.presses("Heal it from the service");
    expect(await lin.reads()).toMatch(/healed by lin@example\.com.*It has no open finding/);
    await lin.follows(order.id, titled);
    expect(await lin.reads()).not.toContain("not right here");
    expect(await lin.reads()).toContain(after);
    await lin.follows("Its findings", "Findings");
    await lin.follows(/^\d+$/, /^Finding \d+$/);
    expect(await lin.reads()).toMatch(/healed .*total/);
    done.push({
      by: "lin@example.com",
      act: "object.healed",
      on: order.id,
      page: titled,
    });
  });

  test("support is asked why a customer was charged twice, and sees both charges marked after one click", async () => {
    const { sandbox } = database;
    const card = { svc_gateway_customer_vault_id: "card_visa" };
    const name = { first_name: "Prudence", last_name: "Twyce", email: "prudence.twyce@example.test" };
    const customer = await sandbox.ok("POST", "/v1/customers", { ...name, ...card });
    const first = await anOrder(sandbox, customer);
    await sandbox.control("POST", "/clock", { advance_seconds: 2 });
    const second = await anOrder(sandbox, customer);
    await service.deliver();

    const ada = await comes("ada@example.com", "support");
    let clicks = 0;
    ada.page.on("framenavigated", () => (clicks += 1));
    await ada.searches("twyce prudence", "Prudence Twyce");
    const rows = ada.main.getByRole("region", { name: "The newest orders" }).locator("tbody tr");
    const marked = (await rows.allInnerTexts())
      .map(spaced)
      .filter((row) => row.includes("Same amount and card, 2 s apart"));
    expect(marked.map((row) => [first, second].findIndex(({ order_number }) => row.includes(order_number)))).toEqual([
      1, 0,
    ]);
    expect(clicks).toBeLessThanOrEqual(2);
    expect(await ada.reads()).toContain("It looks like a double charge");
    await ada.follows(second.order_number, new RegExp(`^Order ${second.order_number}: .* Prudence Twyce`));
    expect(await ada.reads()).toContain(`this order and ${first.order_number}`);
  });

  test("one prepares a month and another closes it; print and command line have the same hashes", async () => {
    const joan = await comes("joan@example.com", "finance");
    await joan.opens("Reports");
    await joan.follows("Close a month", "Close a month");
    await joan.follows("October 2026", "October 2026");
    await joan.writes("Why it is closed although it is not proved", "the sandbox has gaps");
    await joan.presses("Prepare October 2026");
    expect(await joan.reads()).toMatch(/Prepared by joan@example\.com .*another person has to close/);
    await joan.follows("Exceptions", "Exceptions");

    // Whether October is right is said on home, without a click.
    const max = await comes("max@example.com", "finance");
    const clicks = clicksOf(max);
    expect(await max.reads()).toMatch(
      /October 2026 \d+ of \d+ checks done Close prepared, not closed Prepared by joan@example\.com/,
    );
    await max.follows("Close", "October 2026");
    await max.follows("Approve and close", "Close October 2026");
    await max.main.getByLabel(/^I have compared/).check();
    await max.presses("Close October 2026", "October 2026");
    expect(await max.reads()).toMatch(/Closed by max@example\.com Prepared by joan@example\.com/);
    expect(clicks()).toBeLessThanOrEqual(3);

    // Firefox cannot be made to show a page as it prints it.
    if (engine === "chromium") {
      await max.page.emulateMedia({ media: "print" });
      expect(await max.page.getByRole("navigation", { name: "Pages" }).isVisible()).toBe(false);
      expect(await max.page.locator(".signing").isVisible()).toBe(true);
    }
    const printed = await max.reads();
    const env = { DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "UTC" };
    const verified = await runCommand(registerClose, ["close", "verify", "--json"], { env });
    const { intact, closes } = JSON.parse(verified.out) as {
      intact: boolean;
      closes: { month: string; sha256: string }[];
    };
    expect(intact).toBe(true);
    expect(printed).toContain(closes.find(({ month }) => month === "2026-10")?.sha256);
    const folder = await mkdtemp(join(tmpdir(), "stories-"));
    try {
      const out = join(folder, "2026-10.close");
      await runCommand(registerClose, ["close", "export", "2026-10", "--out", out], { env });
      const exported = await readFile(out, "utf8");
      const hashes = printed.match(/\b[0-9a-f]{64}\b/g) ?? [];
      expect(hashes.length).toBeGreaterThan(15);
      for (const hash of hashes.slice(2)) expect(exported).toContain(hash);
      if (engine === "chromium") await max.page.emulateMedia({ media: "screen" });
      expect(strFromU8(await max.downloads("Download the bundle for auditors"))).toBe(exported);
    } finally {
      await rm(folder, { recursive: true });
    }
    done.push(
      { by: "joan@example.com", act: "month.prepared", on: "2026-10", page: null },
      { by: "max@example.com", act: "month.closed", on: "2026-10", page: null },
    );
  });

  test("support opens the evidence of a chargeback, on the page and as a ZIP", async () => {
    const ada = await comes("ada@example.com", "support");
    await ada.opens("Chargebacks");
    const sale = ada.main.locator("tbody tr").first().getByRole("link").first();
    const name = spaced(await sale.innerText());
    await ada.follows(name, /^Chargeback /);
    const key = decodeURIComponent(ada.page.url().split("/").at(-1) ?? "");
    await ada.follows("Evidence", /^Evidence for chargeback /);
    const [hash = "none"] = /[0-9a-f]{64}/.exec(await ada.reads()) ?? [];
    const files = unzipSync(await ada.downloads("Download it as ZIP"));
    expect(Object.keys(files).sort()).toEqual(
      expect.arrayContaining(["evidence.html", "evidence.json", "items.csv", "transactions.csv"]),
    );
    const { chargeback } = JSON.parse(strFromU8(files["evidence.json"] ?? new Uint8Array()));
    expect([chargeback.key, `Order ${chargeback.orderNumber}`]).toEqual([key, name]);
    const sums = Object.entries(files).find(([, bytes]) => strFromU8(bytes).includes(hash));
    expect(sums).toBeDefined();
    done.push({
      by: "ada@example.com",
      act: "evidence.made",
      on: key,
      page: `Chargeback ${chargeback.orderNumber}`,
    });
  });

  test("whoever is woken at night sees on home since when no receiver answers, and what to do one click away", async () => {
    const { db } = database;
    await recordBeat(db, "receiver:1:a", { isReady: true, hasAnswered: true });
    const at = new Date(Date.now() - 9 * 60_000);
    await db("receiver.heartbeats").update({ beat_at: at, ready_at: at, answered_at: at });
    const max = await comes("mel@example.com", "operator");
    const clicks = clicksOf(max);
    const [, first = ""] = /things need attention (.*)/.exec(await max.reads()) ?? [];
    const since = at.toISOString().slice(0, 16).replace("T", " ");
    expect(first).toContain(`No receiver has answered since ${since} UTC: none runs.`);
    const matter = max.main.locator("li", { hasText: "No receiver has answered" });
    await matter.getByRole("link", { name: "What to do" }).click();
    await max.page.waitForURL(/\/docs\/runbooks#receiver_absent$/);
    expect(clicks()).toBe(1);
    const section = max.main.getByRole("heading", { name: "receiver_absent" });
    expect((await section.boundingBox())?.y).toBeLessThan(300);
    await db("receiver.heartbeats").delete();
  });

  test("an auditor finds who did all that, on what and when, and comes from there to what it was done to", async () => {
    const grace = await comes("grace@example.com", "admin");
    await grace.opens("Admin");
    await grace.follows("Audit", "Audit");
    expect(done.map(({ act }) => act)).toHaveLength(6);
    for (const { by, act, on, page } of done) {
      await grace.opens("Admin");
      await grace.follows("Audit", "Audit");
      await grace.writes("Who", by);
      await grace.writes("What", act);
      await grace.presses("Show");
      const row = grace.main.getByRole("row").filter({ hasText: on }).first();
      expect(spaced(await row.innerText())).toMatch(
        new RegExp(`^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2} UTC .*${by} .*127\\.0\\.0\\.1 .*${act} .*${on}`),
      );
      if (page !== null) await grace.follows(on, page);
    }
  });
}
