import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { registerClose } from "../../src/parts/reports/cli/close.ts";
import { registerReport } from "../../src/parts/reports/cli/report.ts";
import { changeAccount, findAccount } from "../../src/app/people/accounts.ts";
import type { Role } from "../../src/app/people/permissions.ts";
import { readCloses, verifyCloses } from "../../src/parts/reports/close/verify.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { coverAll } from "../reports/coverage.ts";
import { letTimePass } from "../reports/sandbox-history.ts";
import { mirrorSales } from "../reports/shop.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

let database: TestDatabase;
let dashboard: DashboardStand;
let ada: { cookie: string; email: string };
let ben: { cookie: string; email: string };
const month = "/reports/close/2025-05";

beforeEach(async () => {
  database = await createTestDatabase();
  await mirrorSales(database.db, [
    { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
    { nth: 2, at: "2025-05-11T10:00:00Z", amount: 500, currency: "jpy" },
  ]);
  await coverAll(database.db, "2025-06-01T00:00:00Z");
  await letTimePass(database.db);
  dashboard = await openDashboard(database);
  ada = await signedIn(database.db, ["finance"], { email: "ada@example.com" });
  ben = await signedIn(database.db, ["finance"], { email: "ben@example.com" });
});
afterEach(async () => {
  await dashboard.close();
  await database.destroy();
});

const get = async (path: string, who = ada) => (await send(`${dashboard.url}${path}`, { cookie: who.cookie })).text();
const post = (path: string, who: { cookie: string }, form: Record<string, string>) =>
  send(`${dashboard.url}${path}`, { cookie: who.cookie, form });

/** What the form on a page says that it was filled in on. */
async function seen(path: string, who = ada): Promise<string> {
  const [, version = ""] = /name="decided-on" value="(\d+)"/.exec(await get(path, who)) ?? [];
  return version;
}

async function prepare(who = ada, more: Record<string, string> = {}): Promise<Response> {
  const [standing] = await standingIds();
  return post(`${month}/prepare`, who, { "decided-on": standing ?? "0", ...more });
}

const standingIds = (): Promise<string[]> =>
  database
    .db("reports.preparations as p")
    .whereRaw("not exists (select from reports.preparation_ends e where e.preparation = p.id)")
    .orderBy("p.id", "desc")
    .pluck("p.id");

const approve = async (who = ben, more: Record<string, string> = {}) =>
  post(`${month}/approve`, who, {
    "decided-on": (await standingIds())[0] ?? "",
    compared: "yes",
    ...more,
  });

const closedMonths = async (): Promise<string[]> => (await readCloses(database.db)).map(({ facts }) => facts.month);

const acts = () => database.db("people.audit").orderBy("id").select("action", "actor", "via", "subject_id");

test("one prepares, sees the hashes, and another closes: hashes are those of the command line", async () => {
  expect(await get(month)).toContain("Prepare May 2025");
  const prepared = await prepare();
  expect([prepared.status, prepared.headers.get("location")]).toEqual([303, month]);
  const shown = await get(month);
  expect(shown).toContain("Prepared by ada@example.com");
  expect(shown).toContain("another person has to close it");
  expect(await get(month, ben)).toContain(`${month}/approve`);
  const preview = await runCommand(registerClose, ["close", "2025-05", "--dry-run", "--json"], {
    env: environment(),
  });
  const { reports } = JSON.parse(preview.out) as { reports: { sha256: string }[] };
  const confirmation = await get(`${month}/approve`, ben);
  for (const { sha256 } of reports) {
    expect(shown).toContain(sha256);
    expect(confirmation).toContain(sha256);
  }

  const closed = await approve();
  expect([closed.status, closed.headers.get("location")]).toEqual([303, month]);
  const page = await get(month);
  for (const { sha256 } of reports) expect(page).toContain(sha256);
  const { closes, problems } = await verifyCloses(database.db);
  expect([closes[0]?.problems, problems]).toEqual([[], []]);
  expect(closes).toMatchObject([{ closedBy: ben.email, preparedBy: ada.email }]);
  expect(page).toContain(closes[0]?.sha256);
  expect(await get("/reports/close/verify")).toContain("Every closed month matches its seal");
  const { out } = await runCommand(registerReport, ["report", "month-end", "--from", "2025-05"], {
    env: environment(),
  });
  expect(out).toContain("2025-05 by ben@example.com, prepared by ada@example.com, close 1 at ");
  expect(await acts()).toEqual([
    { action: "month.prepared", actor: ada.email, via: "dashboard", subject_id: "2025-05" },
    { action: "month.closed", actor: ben.email, via: "dashboard", subject_id: "2025-05" },
  ]);
});

const environment = () => ({ DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: "UTC" });

test("what the dashboard froze is byte for byte what the command line freezes on an equal database", async () => {
  await prepare();
  await approve();
  const frozen = await database.db("reports.closed_reports").orderBy("report").pluck("sha256");
  const twin = await createTestDatabase();
  try {
    await mirrorSales(twin.db, [
      { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
      { nth: 2, at: "2025-05-11T10:00:00Z", amount: 500, currency: "jpy" },
    ]);
    await coverAll(twin.db, "2025-06-01T00:00:00Z");
    await letTimePass(twin.db);
    const env = { DATABASE_URL: twin.url, TALLYHOOK_TIME_ZONE: "UTC" };
    await runCommand(registerClose, ["close", "2025-05", "--yes"], { env });
    expect(await twin.db("reports.closed_reports").orderBy("report").pluck("sha256")).toEqual(frozen);
  } finally {
    await twin.destroy();
  }
});

describe("four eyes hold against", () => {
  test("the one who prepared, who sends the form by hand", async () => {
    await prepare();
    expect((await send(`${dashboard.url}${month}/approve`, { cookie: ada.cookie })).status).toBe(403);
    const answer = await approve(ada);
    expect([answer.status, await answer.text()]).toEqual([
      403,
      expect.stringContaining("another person has to close it"),
    ]);
    expect(await closedMonths()).toEqual([]);
  });

  test("the one who prepared, who has all roles", async () => {
    const { cookie } = await signedIn(database.db, ["finance", "admin", "operator", "support"], {
      email: "owner@example.com",
    });
    const owner = { cookie, email: "owner@example.com" };
    await prepare(owner);
    expect((await approve(owner)).status).toBe(403);
    expect(await closedMonths()).toEqual([]);
  });

  test("two who approve at once: one closes it, and the other is told", async () => {
    const cy = await signedIn(database.db, ["finance"], { email: "cy@example.com" });
    await prepare();
    const id = (await standingIds())[0] ?? "";
    const form = { "decided-on": id, compared: "yes" };
    const answers = await Promise.all([ben, cy].map((who) => post(`${month}/approve`, who, form)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 409]);
    expect(await closedMonths()).toEqual(["2025-05"]);
    expect((await acts()).filter(({ action }) => action === "month.closed")).toHaveLength(1);
  });

  test("an approval of a preparation that another took the place of", async () => {
    await prepare();
    const [old = ""] = await standingIds();
    await prepare(ben);
    const answer = await approve(ben, { "decided-on": old });
    expect([answer.status, await closedMonths()]).toEqual([409, []]);
  });

  test("an approval of one that was withdrawn, or of none", async () => {
    expect((await approve()).status).toBe(409);
    await prepare();
    const [id = ""] = await standingIds();
    expect((await post(`${month}/withdraw`, ben, { "decided-on": id })).status).toBe(303);
    expect((await approve(ben, { "decided-on": id })).status).toBe(409);
    expect((await post(`${month}/withdraw`, ben, { "decided-on": id })).status).toBe(409);
    expect(await closedMonths()).toEqual([]);
    expect((await acts()).map(({ action }) => action)).toEqual(["month.prepared", "month.withdrawn"]);
  });

  test("a month of which more is known than was prepared: 409, and what has changed", async () => {
    await prepare();
    await mirrorSales(database.db, [{ nth: 7, at: "2025-05-12T10:00:00Z", amount: 250 }]);
    await letTimePass(database.db);
    const answer = await approve();
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain(
      "Booked as usd sale: it was 1 movement of 10.00, and is 2 movements of 12.50.",
    );
    expect(await closedMonths()).toEqual([]);
    expect((await prepare()).status).toBe(303);
    expect((await approve()).status).toBe(303);
  });

  test("an approver who is disabled, or loses the role, while it is closed", async () => {
    await prepare();
    const account = await findAccount(database.db, ben.email);
    // The close waits for this lock, after it was let in and before it looks.
    const held = await database.db.transaction();
    await held.raw("lock table reports.closes in share row exclusive mode");
    const answer = approve();
    await eventually("the close waits", async () => {
      const { rows } = await database.db.raw(
        "select from pg_locks where not granted and relation = 'reports.closes'::regclass",
      );
      return rows.length > 0;
    });
    await database.db.transaction((trx) => changeAccount(trx, account?.id ?? 0, { isDisabled: true, now: new Date() }));
    await held.rollback();
    expect((await answer).status).toBe(409);
    expect(await closedMonths()).toEqual([]);
    expect((await approve()).status).toBe(303); // to sign in: the session has ended
    expect(await closedMonths()).toEqual([]);
  });

  test("a confirmation that was not given", async () => {
    await prepare();
    expect((await approve(ben, { compared: "" })).status).toBe(400);
    expect(await closedMonths()).toEqual([]);
  });
});

test("with four eyes off one person may do both, and the seal names one", async () => {
  await dashboard.close();
  dashboard = await openDashboard(database, { settings: { REPORTS_CLOSE_FOUR_EYES: "off" } });
  await prepare();
  expect((await approve(ada)).status).toBe(303);
  const { closes } = await verifyCloses(database.db);
  expect(closes).toMatchObject([{ closedBy: ada.email, preparedBy: null, problems: [] }]);
});

describe("a month that cannot be closed", () => {
  test.each([
    ["2099-01", "2099-01 is over at"],
    ["2025-07", "2025-07 is not proved"],
  ])("%s is not prepared, and the page says what is open", async (which, says) => {
    const answer = await post(`/reports/close/${which}/prepare`, ada, { "decided-on": "0" });
    expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining(says)]);
    const page = await get(`/reports/close/${which}`);
    expect(page).toMatch(/<span class="state bad">open<\/span>/);
    expect(await standingIds()).toEqual([]);
  });

  test("is prepared with a reason, which both see and every report bears", async () => {
    await mirrorSales(database.db, [{ nth: 9, at: "2025-06-12T10:00:00Z", amount: 250 }]);
    await letTimePass(database.db);
    await prepare();
    await approve();
    await letTimePass(database.db);
    const june = "/reports/close/2025-06";
    const reason = "The service <b>was</b> away";
    const answer = await post(`${june}/prepare`, ada, { "decided-on": "0", reason });
    expect(answer.status).toBe(303);
    expect(await get(june, ben)).toContain("The service &lt;b&gt;was&lt;/b&gt; away");
    const [id = ""] = await standingIds();
    expect((await post(`${june}/approve`, ben, { "decided-on": id, compared: "yes" })).status).toBe(303);
    expect(await database.db("reports.closes").orderBy("id").pluck("reason")).toEqual([null, reason]);
    // What somebody writes may name a customer, and no erasure reaches the record.
    expect(JSON.stringify(await database.db("people.audit"))).not.toContain("was");
  });

  test("out of order it is not, and a closed one neither", async () => {
    await prepare();
    await approve();
    await letTimePass(database.db);
    const later = await post("/reports/close/2025-07/prepare", ada, { "decided-on": "0" });
    expect([later.status, await later.text()]).toEqual([409, expect.stringContaining("Close 2025-06 first")]);
    const again = await post(`${month}/prepare`, ada, { "decided-on": "0" });
    expect([again.status, await again.text()]).toEqual([409, expect.stringContaining("closed through 2025-05")]);
  });

  test.each(["2025-13", "0000-00", "x", "..%2f..", "2025-05-01"])("%s is no month", async (which) => {
    const { status } = await send(`${dashboard.url}/reports/close/${which}`, {
      cookie: ada.cookie,
    });
    expect(status).toBe(404);
    expect((await post(`/reports/close/${which}/prepare`, ada, {})).status).toBe(404);
  });
});

test("a form that was filled in before somebody else prepared is refused", async () => {
  const before = await seen(month);
  await prepare(ben);
  const answer = await post(`${month}/prepare`, ada, { "decided-on": before });
  expect(answer.status).toBe(409);
  expect(await standingIds()).toHaveLength(1);
});

test.each([
  ["a reason that is too long", { reason: "x".repeat(501) }],
  ["a reason of several lines", { reason: "a\nb" }],
  ["accounts of which some are missing", { "account-sales": "4000x" }],
])("%s is refused before anything is computed", async (_, form) => {
  expect((await prepare(ada, form as unknown as Record<string, string>)).status).toBe(400);
});

describe("who may", () => {
  const roles: readonly Role[] = ["viewer", "support", "operator", "admin"];
  test.each(roles)("%s neither sees nor does anything of it", async (role) => {
    await prepare();
    const { cookie } = await signedIn(database.db, [role]);
    for (const path of ["/reports/close", month, `${month}/approve`, "/reports/close/verify"]) {
      const { status } = await send(`${dashboard.url}${path}`, { cookie });
      expect([path, status]).toEqual([path, 403]);
    }
    for (const what of ["prepare", "withdraw", "approve"]) {
      const form = { "decided-on": (await standingIds())[0] ?? "", compared: "yes" };
      expect((await post(`${month}/${what}`, { cookie }, form)).status).toBe(403);
    }
    expect(await closedMonths()).toEqual([]);
  });

  test("the bundle is for those who sign, on record, and is what export writes", async () => {
    await prepare();
    await approve();
    const of = (cookie: string) => send(`${dashboard.url}${month}/bundle`, { cookie });
    const { cookie } = await signedIn(database.db, ["support", "operator", "admin"]);
    expect((await of(cookie)).status).toBe(403);
    const bundle = await of(ada.cookie);
    expect([bundle.status, (await bundle.text()).split("\n", 2)[1]]).toEqual([200, '["tallyhook-close",2]']);
    expect((await acts()).at(-1)).toMatchObject({ action: "month.exported", actor: ada.email });
  });
});

test("home says where the month stands, and what hinders", async () => {
  dashboard.clock.set(new Date("2025-06-10T12:00:00Z"));
  ada = await signedIn(database.db, ["finance"], {
    email: ada.email,
    now: new Date("2025-06-10T12:00:00Z"),
  });
  expect(await get("/")).toContain("May 2025 is over and can be prepared for its close.");
  await prepare();
  expect(await get("/")).toContain("May 2025 is prepared by ada@example.com and waits to be closed.");
});

test("work that takes longer than a page waits goes on, shows how far it is, and tells why it failed", async () => {
  const { createMonthWork } = await import("../../src/parts/reports/pages/month-work.ts");
  const { createLog } = await import("../../src/platform/log.ts");
  const log = createLog({ level: "silent", name: "test" });
  const work = createMonthWork({ clock: dashboard.clock, log }, { waitMs: 20 });
  let fail: (error: Error) => void = () => {};
  const what = { doing: "closing" as const, month: "2025-05", by: "ben" };
  const outcome = await work.begin(what, (tell) => {
    tell({ report: "journal", done: 3, of: 15 });
    return new Promise((_, reject) => (fail = reject));
  });
  expect(outcome).toBe("goes on");
  expect(work.running()).toMatchObject({ by: "ben", progress: { done: 3, of: 15 } });
  expect(await work.begin(what, async () => {})).toBe("busy");
  fail(new Error("no"));
  await eventually("it has ended", () => work.running() === null);
  expect(work.failure("2025-05")).toMatchObject({ by: "ben", error: new Error("no") });
  await expect(work.begin(what, () => Promise.reject(new Error("at once")))).rejects.toThrow("at once");
  expect([await work.begin(what, async () => {}), work.failure("2025-05")]).toEqual(["done", null]);
});
