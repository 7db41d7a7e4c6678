import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readAudit } from "../../src/app/people/audit.ts";
import type { Role } from "../../src/app/people/permissions.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type HostileService, refusal, startHostileService } from "../reconcile/hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

let service: HostileService;
let stand: ReconcileStand;
let dashboard: DashboardStand;
let db: ReconcileStand["database"]["db"];
const cookies = new Map<string, string>();

beforeAll(async () => {
  service = await startHostileService(6);
  stand = await createReconcileStand(service.url);
  ({ db } = stand.database);
  dashboard = await openDashboard(stand.database, {
    service: { baseUrl: service.url, apiKey: testKey },
  });
  dashboard.clock.set(new Date());
  for (const roles of [["viewer"], ["support"], ["operator"], ["operator", "support"]] as Role[][]) {
    const { cookie } = await signedIn(db, roles, { now: new Date() });
    cookies.set(roles.join("+"), cookie);
  }
  await stand.run();
});
afterAll(async () => {
  await dashboard.close();
  await stand.close();
  await service.close();
});
beforeEach(() => {
  service.quirks = {};
  dashboard.clock.set(new Date());
});

const as = (roles: string) => ({ cookie: cookies.get(roles) ?? "" });
const page = async (path: string, roles = "viewer") => {
  const answer = await send(`${dashboard.url}${path}`, as(roles));
  return { status: answer.status, text: await answer.text() };
};
const post = async (path: string, form: Record<string, string>, roles: string) => {
  const answer = await send(`${dashboard.url}${path}`, { ...as(roles), form });
  return { status: answer.status, text: await answer.text() };
};
const decidedOn = (text: string, action: string): string => {
  const form = text.slice(text.indexOf(`action="${action}"`));
  return /name="decided-on" value="([^"]*)"/.exec(form)?.[1] ?? "";
};
/** As a person reads it. */
const words = (text: string): string =>
  text
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#39;", "'")
    .replaceAll(/\s+/g, " ");

const order = (n: number) => service.objects["orders"]?.[n] as { id: string } & Record<string, unknown>;
const monthOf = (at: string) => String(at).slice(0, 7);

describe("coverage", () => {
  test("says until when each list is proved, and which run proved each day", async () => {
    const createdAt = String(order(0)["created_at"]);
    const { status, text } = await page(`/reconciliation?month=${monthOf(createdAt)}`);
    expect(status).toBe(200);
    expect(words(text)).toContain("Proved equal until");
    const day = text.slice(text.indexOf(`datetime="${createdAt.slice(0, 10)}"`));
    const cell = day.slice(0, day.indexOf("</td>"));
    expect(words(cell).match(/: proved by run 1/g)).toHaveLength(4);
    expect(words(cell)).toMatch(/Orders, (Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+: proved by run 1/);
    // The keyboard has one stop a day, not one a square.
    expect(text.match(/<a href="\/reconciliation\/runs\/1"><time datetime="[^"]*"/g)).toHaveLength(
      text.match(/<ul class="squares">/g)?.length ?? 0,
    );
  });

  test("says in words what nothing proves", async () => {
    const { bounds } = await db("reconcile.coverage")
      .where({ resource: "order", run: 1 })
      .first(db.raw("created_before as bounds"));
    const from = new Date(bounds.getTime() - 40 * 86_400_000);
    await db("reconcile.coverage").where({ resource: "order", run: 1 }).update({ created_from: from });
    const month = await page(`/reconciliation?month=${from.toISOString().slice(0, 7)}`);
    expect(words(month.text)).toMatch(/Orders: nothing proves .*\d{4}-\d\d-01 00:00 UTC to /);
    expect(words(month.text)).toContain("Proved in part");
    expect(words((await page("/")).text)).toContain("Orders: nothing proves what was created before");
    await db("reconcile.coverage").where({ resource: "order", run: 1 }).update({ created_from: null });
  });

  test("says nothing of a proof in a month that began after the last one, however it is cut", async () => {
    const [year, month] = [new Date().getUTCFullYear(), new Date().getUTCMonth()];
    dashboard.clock.set(new Date(Date.UTC(year, month + 1, 2, 11, 59, 59)));
    const visitor = await signedIn(db, ["viewer"], { now: dashboard.clock.now() });
    const answer = await send(`${dashboard.url}/reconciliation`, visitor);
    const text = words(await answer.text());
    expect(text).not.toMatch(/No gap|all that was created/);
    expect(text).toMatch(/Orders: nothing proves \d{4}-\d\d-01 00:00 UTC to .*-02 11:59 UTC/);
    expect(text.match(/: not proved/g)).toHaveLength(8);
  });

  test("takes an address that names no month, or one to come, for this month", async () => {
    for (const month of ["9999-12", "2026-13", "x'\"<b>"]) {
      const { status, text } = await page(`/reconciliation?month=${encodeURIComponent(month)}`);
      expect(status).toBe(200);
      expect(text).not.toContain("Later month");
    }
  });
});

describe("a finding", () => {
  let finding: string;

  beforeAll(async () => {
    await db("mirror.orders")
      .where("id", order(2).id)
      .update({
        total: 7,
        version: db.raw("'2000' || substr(version, 5)"),
        data: db.raw(`data || '{"description": "Ada Lovelace", "total": 7}'`),
      });
    Object.assign(order(2), { description: "Grace Hopper", metadata: { note: "call Grace" } });
    await stand.run({ kind: "full" }, { reportOnly: true });
    const found = await db("reconcile.findings")
      .where({ object_id: order(2).id })
      .first("id");
    finding = found.id;
    await db("reconcile.findings")
      .where({ id: finding })
      .update({
        evidence: db.raw(`evidence || '{"reason": "quotes Grace Hopper"}'`),
      });
  });

  test("stands on the board with its money and fields, by its object, its order number and its list", async () => {
    const number = String(order(2)["order_number"]);
    for (const query of ["", `?object=${order(2).id}`, `?object=${number}`, "?list=order", "?severity=high"]) {
      const { text } = await page(`/reconciliation/findings${query}`);
      expect([query, words(text).includes("9.95 USD")], query).toEqual([query, true]);
      expect(text).toContain(`href="/reconciliation/findings/${finding}"`);
    }
    for (const query of ["?object=N9999999", "?list=customer", "?state=healed", "?with=1"]) {
      const { text } = await page(`/reconciliation/findings${query}`);
      expect([query, text.includes(`findings/${finding}"`)], query).toEqual([query, false]);
    }
  });

  test("is drawn by night beside what was healed; a filter leaves the drawing out", async () => {
    const { text } = await page("/reconciliation/findings");
    expect(text).toMatch(/<desc id="drift-0-description">\s*1 night: 0 findings were healed, 1 left open/);
    expect((await page("/reconciliation/findings?state=healed")).text).not.toContain("drift-0");
  });

  test("shows a viewer which fields differ, and nothing of persons; whoever may see them is recorded", async () => {
    await post(`/reconciliation/findings/${finding}/note`, { text: "Grace called" }, "operator");
    const seen = await page(`/reconciliation/findings/${finding}`);
    expect(words(seen.text)).toMatch(/total 0.07 USD 10.02 USD/);
    expect(words(seen.text)).toContain("metadata differs; personal, not shown");
    expect(seen.text).not.toMatch(/Grace|Ada/);
    expect(await readAudit(db, { action: "finding.read", limit: 5 })).toEqual([]);
    const known = await page(`/reconciliation/findings/${finding}`, "support");
    expect(words(known.text)).toContain("Grace called");
    expect(known.text).toContain("quotes Grace Hopper");
    for (const action of ["finding.read", "notes.read"]) {
      expect(await readAudit(db, { action, limit: 5 })).toMatchObject([{ subject: { kind: "finding", id: finding } }]);
    }
  });

  test("is given to somebody once: a form that was made before is refused", async () => {
    const path = `/reconciliation/findings/${finding}`;
    const { id } = await db("people.accounts").orderBy("id").first("id");
    const { text } = await page(path, "support");
    const form = { assignee: String(id), "decided-on": decidedOn(text, `${path}/assign`) };
    expect((await post(`${path}/assign`, form, "support")).status).toBe(303);
    const again = await post(`${path}/assign`, { ...form, assignee: "nobody" }, "operator");
    expect(again.status).toBe(409);
    const board = await page(`/reconciliation/findings?with=${id}`);
    expect(board.text).toContain(`href="/reconciliation/findings/${finding}"`);
  });

  test("by another writing of its number is not there: it would have another case", async () => {
    const path = `/reconciliation/findings/0${finding}`;
    const noted = await post(`${path}/note`, { text: "unseen" }, "support");
    expect([(await page(path, "support")).status, noted.status]).toEqual([404, 404]);
  });

  test("is acknowledged with a note, by whoever is signed in, on what they saw", async () => {
    const path = `/reconciliation/findings/${finding}`;
    const seen = decidedOn((await page(path, "operator")).text, `${path}/acknowledge`);
    const stale = await post(`${path}/acknowledge`, { note: "known", "decided-on": "0" }, "operator");
    expect(stale.status).toBe(409);
    expect((await post(`${path}/acknowledge`, { note: " ", "decided-on": seen }, "operator")).status).toBe(400);
    expect((await post(`${path}/acknowledge`, { note: "known", "decided-on": seen }, "operator")).status).toBe(303);
    const [act] = await readAudit(db, { action: "finding.acknowledged", limit: 1 });
    expect(await db("reconcile.findings").where({ id: finding }).first("state", "ack_by", "ack_note")).toEqual({
      state: "acknowledged",
      ack_by: act?.actor,
      ack_note: "known",
    });
    expect(act).toMatchObject({ subject: { id: finding }, before: { state: "open" } });
    expect((await page(path)).text).not.toContain("known</bdi>");
  });
});

describe("a heal", () => {
  const path = () => `/reconciliation/heal/order/${order(2).id}`;
  const total = async () => (await db("mirror.orders").where("id", order(2).id).first("total")).total;

  test("shows both sides as they are now; personal values to whoever may see them, recorded", async () => {
    const seen = await page(path());
    expect(words(seen.text)).toMatch(/total 0.07 USD 10.02 USD/);
    expect(seen.text).not.toMatch(/Grace|Ada/);
    expect(seen.text).not.toContain("<textarea");
    expect((await page(path(), "operator")).text).not.toMatch(/Grace|Ada/);
    expect(await readAudit(db, { action: "object.compared", limit: 5 })).toEqual([]);
    expect((await page(path(), "support")).text).toContain("Grace Hopper");
    expect(await readAudit(db, { action: "object.compared", limit: 5 })).toMatchObject([
      { subject: { kind: "order", id: order(2).id } },
    ]);
  });

  test("is refused on a row, or on an answer of the service, that nobody saw, and shows it as it is now", async () => {
    const seen = decidedOn((await page(path(), "operator")).text, path());
    const form = { reason: "spoiled", "decided-on": seen };
    await db("mirror.orders").where("id", order(2).id).update({ total: 8 });
    const stale = await post(path(), form, "operator+support");
    expect(stale.status).toBe(409);
    expect(words(stale.text)).toContain("Changed since: the mirror's row.");
    expect(words(stale.text)).toMatch(/total 0.08 USD 10.02 USD/);
    expect(stale.text).not.toMatch(/Grace|Ada/);
    expect(stale.text).toContain("spoiled</textarea");
    await db("mirror.orders").where("id", order(2).id).update({ total: 7 });
    Object.assign(order(2), { coupon_code: null, subtotal: 1_001 });
    expect(words((await post(path(), form, "operator")).text)).toContain("Changed since: what the service shows.");
    Object.assign(order(2), { subtotal: 1_002 });
    expect(await total()).toBe("7");
    expect(await db("mirror.heals")).toEqual([]);
  });

  test("is made of what was seen, with a reason and its record, and closes the object's findings", async () => {
    const seen = decidedOn((await page(path(), "operator")).text, path());
    expect((await post(path(), { reason: "", "decided-on": seen }, "operator")).status).toBe(400);
    const form = { reason: "spoiled by hand", "decided-on": seen };
    expect((await post(path(), form, "operator")).status).toBe(303);
    expect(await total()).toBe("1002");
    const [act] = await readAudit(db, { action: "object.healed", limit: 5 });
    expect(act).toMatchObject({
      subject: { kind: "order", id: order(2).id },
      before: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/), findings: [expect.any(Number)] },
    });
    expect(JSON.stringify(act)).not.toMatch(/Grace|Ada/);
    expect(await db("mirror.heals").select("healed_by", "reason")).toEqual([
      { healed_by: act?.actor, reason: "spoiled by hand" },
    ]);
    expect(
      await db("reconcile.findings")
        .where({ object_id: order(2).id })
        .pluck("state"),
    ).toEqual(["healed"]);
    expect((await post(path(), form, "operator")).status).toBe(409);
  });

  test("tells what is wrong when the service is down, knows nothing of the object, or refuses the key", async () => {
    service.quirks = { object: () => ({ status: 503, body: "<html>down</html>" }) };
    const unavailable = await page(path(), "operator");
    expect(unavailable.status).toBe(502);
    expect(words(unavailable.text)).toContain("The service gave no usable answer");
    service.quirks = { object: () => refusal(401, "invalid_api_key") };
    expect(words((await page(path(), "operator")).text)).toContain("check SVC_API_KEY");
    service.quirks = {};
    const unknown = await page("/reconciliation/heal/order/nobody-knows", "operator");
    expect([unknown.status, words(unknown.text).includes("does not know the order")]).toEqual([404, true]);
    expect((await page("/reconciliation/heal/planet/x", "operator")).status).toBe(404);
    expect((await page("/reconciliation/heal/order/..%2F..%2Fx", "operator")).status).toBe(404);
  });
});

describe("a run", () => {
  test("is listed with what it did, and shows what it read", async () => {
    const { text } = await page("/reconciliation/runs");
    expect(words(text)).toMatch(/run 1 .* full complete/);
    const run = await page("/reconciliation/runs/1");
    expect(words(run.text)).toMatch(/Orders from the first record .* read \S+ \S+ UTC \d+ 6/);
    expect((await page("/reconciliation/runs/999")).status).toBe(404);
  });

  test("that has not ended shows how far it is, and that nobody is at work on it", async () => {
    await db("reconcile.coverage").where({ run: 1, resource: "order" }).update({ state: "pending" });
    await db("reconcile.runs").where({ id: 1 }).update({ state: "running", finished_at: null });
    const { text } = await page("/reconciliation/runs/1");
    expect(words(text)).toContain("3 of 4 parts read");
    expect(words(text)).toContain("It was interrupted");
    await db("reconcile.coverage").where({ run: 1, resource: "order" }).update({ state: "complete" });
    await db("reconcile.runs").where({ id: 1 }).update({ state: "complete", finished_at: db.fn.now() });
  });

  test("that is ordered while no worker runs says so, waits, and can be taken back", async () => {
    const path = "/reconciliation/runs";
    const before = await page(path, "operator");
    expect(words(before.text)).toContain("no worker runs");
    const form = { kind: "nightly", "decided-on": decidedOn(before.text, path) };
    expect((await post(path, { ...form, kind: "" }, "operator")).status).toBe(400);
    expect((await post(path, { ...form, kind: "range" }, "operator")).status).toBe(400);
    expect((await post(path, form, "operator")).status).toBe(303);
    const ordered = await page(path, "operator");
    expect(words(ordered.text)).toContain("It waits: no worker runs.");
    expect((await post(path, form, "operator")).status).toBe(409);
    const [open] = await db("reconcile.run_orders").select("id", "ordered_by");
    expect(await readAudit(db, { action: "run.ordered", limit: 5 })).toMatchObject([
      { actor: open.ordered_by, subject: { id: open.id } },
    ]);
    expect((await post(`/reconciliation/orders/${open.id}/withdraw`, {}, "operator")).status).toBe(303);
    expect(await db("reconcile.run_orders").pluck("outcome")).toEqual(["withdrawn"]);
    const again = await post(`/reconciliation/orders/${open.id}/withdraw`, {}, "operator");
    expect(again.status).toBe(409);
    expect(words(again.text)).toContain("This order was taken back before.");
    expect((await post("/reconciliation/orders/x/withdraw", {}, "operator")).status).toBe(404);
  });

  test("that a worker has begun is not taken back, and the page says which run it is", async () => {
    const path = "/reconciliation/runs";
    const form = {
      kind: "full",
      "decided-on": decidedOn((await page(path, "operator")).text, path),
    };
    await post(path, form, "operator");
    const order = await db("reconcile.run_orders").whereNull("ended_at").first("id", "run_key");
    const [run] = await db("reconcile.runs")
      .insert({ run_key: order.run_key, kind: "full", t0: new Date(0), state: "abandoned" })
      .returning("id");
    const { status, text } = await post(`/reconciliation/orders/${order.id}/withdraw`, {}, "operator");
    expect(status).toBe(409);
    expect(words(text)).toContain(`Run ${run.id} has already begun for this order`);
    expect(text).toContain(`href="/reconciliation/runs/${run.id}"`);
    await db("reconcile.run_orders").where({ id: order.id }).delete();
    await db("reconcile.runs").where({ id: run.id }).delete();
  });

  test("is ordered for a range of local times", async () => {
    const path = "/reconciliation/runs";
    const form = {
      kind: "range",
      from: "2026-11-03T14:00",
      to: "2026-11-03T15:00",
      "report-only": "yes",
      "decided-on": decidedOn((await page(path, "operator")).text, path),
    };
    expect((await post(path, { ...form, to: "2026-11-03T13:00" }, "operator")).status).toBe(400);
    expect((await post(path, { ...form, to: "soon" }, "operator")).status).toBe(400);
    expect((await post(path, form, "operator")).status).toBe(303);
    expect(await db("reconcile.run_orders").whereNull("ended_at").first()).toMatchObject({
      kind: "range",
      range_from: new Date("2026-11-03T14:00:00Z"),
      range_to: new Date("2026-11-03T15:00:00Z"),
      report_only: true,
    });
  });
});
