import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cardOf } from "../../src/parts/delivery/pages/summary.ts";
import { recipientWords } from "../../src/parts/delivery/pages/recipient-words.ts";
import type { HandlerHealth } from "../../src/app/answers.ts";
import { type HostTrouble, noteTroubles } from "../../src/parts/delivery/dispatch/handler-hosts.ts";
import { pauseHandler } from "../../src/parts/delivery/dispatch/manage-handlers.ts";
import { destinationNamed } from "../../src/parts/delivery/forward/destination-name.ts";
import type { Role } from "../../src/app/people/permissions.ts";
import { emptyDispatch, registerHandler } from "../dispatch/dispatch-stand.ts";
import { storeRun } from "../dispatch/stored-runs.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
const cookies = new Map<Role, string>();

beforeAll(async () => {
  dashboard = await openDashboard(database);
  for (const role of ["viewer", "operator", "support"] as const) {
    cookies.set(role, (await signedIn(database.db, [role])).cookie);
  }
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  await emptyDispatch(database.db);
  await registerHandler(database.db, { name: "receipts", from: "now" });
});

const page = async (path: string, role: Role = "operator") => {
  const answer = await send(`${dashboard.url}${path}`, { cookie: cookies.get(role) ?? "" });
  return { status: answer.status, text: await answer.text() };
};
const textOf = async (path: string, role?: Role) => (await page(path, role)).text;

/** What the form that leads to an address says it was decided on. */
function versionIn(text: string, action: string): string {
  const [, form = ""] = text.split(`action="${action}"`);
  const [, version] = /name="decided-on" value="([^"]*)"/.exec(form) ?? [];
  if (version === undefined) throw new Error(`there is no form for ${action}`);
  return version;
}

const post = (action: string, form: Record<string, string>) =>
  send(`${dashboard.url}${action}`, { cookie: cookies.get("operator") ?? "", form });

/** Sends the form of that address from a page, as who sees the page now. */
const submit = async (from: string, action: string, fields: Record<string, string> = {}) =>
  post(action, { "decided-on": versionIn(await textOf(from), action), ...fields });

const acts = () => database.db("people.audit").orderBy("id").pluck<string[]>("action");
const runs = () => database.db("dispatch.runs").orderBy("seq").select("seq", "state", "attempts", "is_first");
const shownIn = (text: string) =>
  [...text.matchAll(/<tr>\s*<td class="number"[^>]*>(\d+)<\/td>/g)].map(([, seq]) => Number(seq));

/** Thrown by a merchant's code: what an error's name can be. */
const hostileError = `<script>alert(1)</script>\u202egpj.exe\u0007 ${"x".repeat(100_000)}`;

test("the list has handlers and destinations, and how each does", async () => {
  const { db } = database;
  await registerHandler(db, { name: "forward:crm", from: "now" });
  await pauseHandler(db, "forward:crm", "it moves");
  await storeRun(db, { seq: 1, id: "order-1", state: "dead", error: "TypeError" });
  await storeRun(db, { seq: 2, id: "order-1", isFirst: false });
  const text = await textOf("/handlers", "viewer");
  expect(text).toContain('href="/handlers/receipts"');
  expect(text).toContain('href="/handlers/forward%3Acrm"');
  expect(text).toMatch(/<bdi class="outside">crm<\/bdi><\/a\s*>\s*<span class="hint">destination/);
  expect(text).toContain("paused");
  expect(text).toContain("node src/bin/tallyhook.js handlers list");
  expect(await textOf("/handlers/forward%3Acrm")).toContain("node src/bin/tallyhook.js forward show crm");
});

test("the list begins with files that are down, and why, as text", async () => {
  const why = "its import failed (<script>alert(1)</script>)";
  const note = (...troubles: HostTrouble[]) => noteTroubles(database.db, "1:a", troubles);
  await note({ files: ["handlers/a.mjs"], isApart: true, lastsMs: 1_000, why });
  const text = await textOf("/handlers", "viewer");
  expect(text).toMatch(/<p class="problem">\s*<bdi class="outside">a\.mjs<\/bdi>: not usable/);
  expect(text).toContain("its import failed (&lt;script&gt;");
  expect(text).toContain("The other handlers run.");
  await note();
  expect(await textOf("/handlers")).not.toContain("a.mjs");
});

test("a handler's page lists what it has not done, by state, with its object, and offers nothing to a viewer", async () => {
  const { db } = database;
  await storeRun(db, { seq: 1, id: "order 1/x", state: "dead", error: "ObjectNotSeen" });
  await storeRun(db, { seq: 2, id: "b", error: "TypeError", failedAt: new Date() });
  await storeRun(db, { seq: 3, id: "c" });
  expect(shownIn(await textOf("/handlers/receipts"))).toEqual([1, 2, 3]);
  expect(shownIn(await textOf("/handlers/receipts?state=dead"))).toEqual([1]);
  expect(shownIn(await textOf("/handlers/receipts?state=failed"))).toEqual([2]);
  expect(shownIn(await textOf("/handlers/receipts?state=waiting"))).toEqual([2, 3]);
  const text = await textOf("/handlers/receipts", "viewer");
  expect(text).toContain('href="/objects/order/order%201%2Fx"');
  expect(text).toContain("the mirror has not seen the object yet.");
  expect(text).not.toMatch(/method="post" action="\/handlers|Retry all|Skip…/);
});

test("a state's list goes on page by page", async () => {
  for (let seq = 1; seq <= 52; seq++) {
    await storeRun(database.db, { seq, id: `order-${seq}`, state: "dead" });
  }
  const first = await textOf("/handlers/receipts?state=dead");
  expect(shownIn(first)).toHaveLength(50);
  const [, next = ""] = /rel="next" href="([^"]+)"/.exec(first) ?? [];
  expect(shownIn(await textOf(next.replaceAll("&amp;", "&")))).toEqual([51, 52]);
  expect(await textOf("/handlers/receipts")).toContain("These are the first 50 changes.");
});

test("there is no page of what never ran, nor of what has another room's name", async () => {
  for (const name of ["none", "other%3Aname", "x".repeat(500)]) {
    expect((await page(`/handlers/${name}`)).status).toBe(404);
  }
  const form = { reason: "x", "decided-on": "on" };
  expect((await post("/handlers/none/pause", form)).status).toBe(404);
  expect((await page("/handlers/receipts/runs/9/skip")).status).toBe(404);
  expect((await post("/handlers/receipts/runs/9/retry", form)).status).toBe(404);
});

test("whatever a merchant's code throws is shown as text, in one frame and cut", async () => {
  await storeRun(database.db, { seq: 1, id: "a", state: "dead", error: hostileError });
  await pauseHandler(database.db, "receipts", hostileError);
  for (const path of ["/handlers", "/handlers/receipts", "/handlers/receipts/runs/1/skip", "/"]) {
    const text = await textOf(path);
    expect(text.length, path).toBeLessThan(20_000);
    expect(text, path).not.toContain("<script>alert");
    expect(text, path).not.toContain("\u0007");
    expect(text.replaceAll(/<bdi[^>]*>[^<]*<\/bdi>/g, ""), path).not.toContain("\u202e");
  }
});

describe("pausing and resuming", () => {
  test("say who and why, with their records", async () => {
    const at = "/handlers/receipts";
    const before = (await acts()).length;
    const paused = await submit(at, `${at}/pause`, { reason: "the mail server moves" });
    expect([paused.status, paused.headers.get("location")]).toEqual([303, at]);
    // What people write may name a customer.
    for (const path of [at, "/handlers"]) {
      expect(await textOf(path, "viewer")).not.toContain("the mail server moves");
      expect(await textOf(path, "operator")).toContain("reading them requires the permission person:read");
      expect(await textOf(path, "support")).toContain("the mail server moves");
    }
    const text = await textOf(at);
    expect(text).toMatch(/<\/time\s*> by <bdi class="outside">p\w+@example\.com/);
    expect((await submit(at, `${at}/resume`)).status).toBe(303);
    expect((await acts()).slice(before)).toEqual(["handler.paused", "notes.read", "notes.read", "handler.resumed"]);
    expect(await database.db("dispatch.handlers").pluck("paused_by")).toEqual([null]);
  });

  test("of what somebody paused or resumed meanwhile are refused, and it is shown", async () => {
    const at = "/handlers/receipts";
    const version = versionIn(await textOf(at), `${at}/pause`);
    await pauseHandler(database.db, "receipts", "by Anna");
    const form = { "decided-on": version, reason: "mine" };
    const answer = await post(`${at}/pause`, form);
    expect(answer.status).toBe(409);
    expect(await answer.text()).toMatch(/Now:.*paused/s);
    expect((await post(`${at}/resume`, form)).status).toBe(409);
    expect(await database.db("dispatch.handlers").pluck("pause_reason")).toEqual(["by Anna"]);
  });

  test.each([[""], ["two\nlines"], ["x".repeat(201)]])("need a reason in one line: %j", async (reason) => {
    const at = "/handlers/receipts";
    expect((await submit(at, `${at}/pause`, { reason })).status).toBe(400);
    expect(await database.db("dispatch.handlers").pluck("paused_by")).toEqual([null]);
  });
});

describe("retrying", () => {
  test("gives one run its attempts again, with its record", async () => {
    await storeRun(database.db, { seq: 1, id: "a", state: "dead" });
    const before = (await acts()).length;
    const action = "/handlers/receipts/runs/1/retry";
    expect((await submit("/handlers/receipts", action)).status).toBe(303);
    expect(await runs()).toEqual([{ seq: "1", state: "waiting", attempts: 0, is_first: true }]);
    expect((await acts()).slice(before)).toEqual(["handler.retried"]);
  });

  test("all that is dead is counted first, and retried where it is still as many", async () => {
    const { db } = database;
    for (const seq of [1, 2]) await storeRun(db, { seq, id: `o-${seq}`, state: "dead" });
    const at = "/handlers/receipts/retry-dead";
    const version = versionIn(await textOf(at), at);
    expect(await textOf(at)).toContain("2 dead changes are");
    expect(await textOf(at, "viewer")).not.toContain("<button>Retry all");
    await storeRun(db, { seq: 3, id: "o-3", state: "dead" });
    const late = await post(at, { "decided-on": version });
    expect(late.status).toBe(409);
    expect(await late.text()).toContain("Now 3 are dead.");
    expect((await submit(at, at)).status).toBe(303);
    expect((await runs()).map(({ state }) => state)).toEqual(["waiting", "waiting", "waiting"]);
    expect(await textOf(at)).toContain("Nothing is dead any more.");
  });

  test("is refused for a run that has been tried since, runs just now, or waits behind another", async () => {
    const { db } = database;
    await storeRun(db, { seq: 1, id: "a", state: "dead" });
    await storeRun(db, { seq: 2, id: "a", isFirst: false });
    const action = "/handlers/receipts/runs/1/retry";
    const version = versionIn(await textOf("/handlers/receipts"), action);
    const behind = await post("/handlers/receipts/runs/2/retry", { "decided-on": "waiting 0 -" });
    expect(behind.status).toBe(409);
    expect(await behind.text()).toContain("waits behind number 1");
    await db("dispatch.runs").where({ seq: 1 }).update({ attempts: 13 });
    expect((await post(action, { "decided-on": version })).status).toBe(409);
    await db("dispatch.runs")
      .where({ seq: 1 })
      .update({ attempts: 12, claimed_until: db.raw("now() + interval '1 hour'") });
    const running = await post(action, { "decided-on": version });
    expect(running.status).toBe(409);
    expect(await running.text()).toContain("runs number 1 now");
  });
});

test("skipping is confirmed, lets the next of the object go on, and is recorded with what was lost", async () => {
  const { db } = database;
  await storeRun(db, { seq: 1, id: "a", state: "dead", error: "TypeError" });
  await storeRun(db, { seq: 2, id: "a", isFirst: false });
  const at = "/handlers/receipts/runs/1/skip";
  const text = await textOf(at);
  expect(text).toContain("This cannot be undone.");
  expect(await textOf(at, "viewer")).not.toContain("Skip it for good");
  const version = versionIn(text, at);
  expect((await post(at, { "decided-on": "dead 3 -" })).status).toBe(409);
  expect((await post(at, { "decided-on": version })).status).toBe(303);
  expect(await runs()).toEqual([{ seq: "2", state: "waiting", attempts: 0, is_first: true }]);
  const act = await db("people.audit").orderBy("id", "desc").first();
  expect(act).toMatchObject({
    action: "handler.skipped",
    subject_id: "receipts",
    before: { seq: 1, kind: "order.paid", id: "a", state: "dead" },
  });
});

describe("the card of home", () => {
  const now = new Date("2026-11-22T12:00:00Z");
  const health = (given: Partial<HandlerHealth>): HandlerHealth => ({
    name: "receipts",
    source: "changes",
    pausedBy: null,
    pausedAt: null,
    pauseReason: null,
    dead: 0,
    postponed: 0,
    deadSince: null,
    oldestDead: null,
    position: 1,
    unreadSince: null,
    nextDueAt: null,
    ...given,
  });
  const kinds = { hasHandlers: true as const, destinationOf: destinationNamed };
  const card = (...given: Partial<HandlerHealth>[]) =>
    cardOf(
      given.flatMap((each) => {
        const words = recipientWords(each.name ?? "receipts", kinds);
        return words === null ? [] : [{ health: health(each), words }];
      }),
      now,
    );

  test.each([
    ["nothing ran", [], "good", "None", []],
    ["all go well", [{}], "good", "1 on", []],
    [
      "one is paused by a person",
      [{ pausedBy: "person" }, {}],
      "warn",
      "1 on",
      ["The handler receipts is paused by a person."],
    ],
    [
      "one failed for all",
      [{ name: "forward:crm", pausedBy: "failures" }],
      "bad",
      "0 on",
      ["The destination crm is paused, because it failed for all objects."],
    ],
    [
      "something is dead",
      [{ dead: 1_000 }],
      "bad",
      "1000 or more dead",
      ["The handler receipts has given up 1000 or more changes; later ones of the same objects wait."],
    ],
    [
      "one is behind",
      [{ unreadSince: new Date("2026-11-22T09:00:00Z") }],
      "warn",
      "1 on",
      ["The handler receipts is 3 hours behind."],
    ],
  ] as const)("where %s", (_, given, tone, headline, reasons) => {
    expect(card(...given)).toMatchObject({ tone, headline, reasons: reasons.map((text) => ({ text })) });
  });

  test("leaves out what belongs to a room that is not there", () => {
    expect(recipientWords("forward:crm", { hasHandlers: true })).toBeNull();
    expect(recipientWords("receipts", { hasHandlers: false, destinationOf: destinationNamed })).toBeNull();
    expect(recipientWords("forward:crm", { hasHandlers: false, destinationOf: destinationNamed })).toMatchObject({
      name: "crm",
    });
  });
});
