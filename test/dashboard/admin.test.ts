import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Account, findAccount } from "../../src/app/people/accounts.ts";
import { readAudit, recordAct } from "../../src/app/people/audit.ts";
import type { Role } from "../../src/app/people/permissions.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, cookieOf, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let admin: { cookie: string; email: string };

beforeAll(async () => {
  dashboard = await openDashboard(database, {
    settings: {
      SMTP_URL: "smtp://post:hunter2-of-mail@mail.example.com",
      MAIL_FROM: "a@example.com",
    },
  });
  admin = await signedIn(database.db, ["admin"], { email: "admin@example.com" });
});
afterAll(() => dashboard.close());

const read = async (path: string, cookie = admin.cookie): Promise<string> =>
  (await send(`${dashboard.url}${path}`, { cookie })).text();

async function post(
  path: string,
  form: Record<string, string> | [string, string][],
  cookie = admin.cookie,
): Promise<Response> {
  return fetch(`${dashboard.url}${path}`, {
    method: "POST",
    redirect: "manual",
    headers: { cookie, "sec-fetch-site": "same-origin" },
    body: new URLSearchParams(form),
  });
}

async function accountOf(email: string): Promise<Account> {
  const account = await findAccount(database.db, email);
  if (account === null) throw new Error(`no account ${email}`);
  return account;
}

/** A person and the address of their page. */
async function person(roles: readonly Role[]) {
  const { cookie, email } = await signedIn(database.db, roles);
  const { id, version } = await accountOf(email);
  return { cookie, email, path: `/admin/users/${id}`, version };
}

const lastAct = async () => (await readAudit(database.db, { limit: 1 }))[0];

/** What the next page says once. */
const noticeOf = (answer: Response): string =>
  decodeURIComponent(
    answer.headers
      .getSetCookie()
      .map((cookie) => /^tallyhook-notice=([^;]+)/.exec(cookie)?.[1])
      .find((text) => text !== undefined) ?? "",
  );

const tokenIn = (text: string): string => /\/sign-in\/link\?token=([\w-]+)/.exec(text)?.[1] ?? "";

describe("adding a person", () => {
  test("gives them the roles, and shows a link once that signs them in once", async () => {
    const answer = await post("/admin/users", [
      ["email", "Grace@Example.com"],
      ["role", "support"],
      ["role", "finance"],
      ["link", "yes"],
    ]);
    expect(answer.status).toBe(303);
    const token = tokenIn(noticeOf(answer));
    expect(await read(answer.headers.get("location") ?? "")).not.toContain(token);
    const account = await accountOf("grace@example.com");
    expect(account.roles).toEqual(["support", "finance"]);
    const link = `${dashboard.url}/sign-in/link?token=${token}`;
    expect(cookieOf(await send(link))).not.toBeNull();
    expect((await send(link)).status).toBe(403);
    const acts = await readAudit(database.db, {
      subject: { kind: "account", id: account.email },
      limit: 5,
    });
    expect(acts.map(({ action, actor }) => [action, actor])).toEqual([
      ["sign-in-link.made", admin.email],
      ["account.added", admin.email],
    ]);
    expect(JSON.stringify(acts)).not.toContain(token);
  });

  test("makes no link for who signs in elsewhere", async () => {
    const answer = await post("/admin/users", { email: "heidi@example.com", role: "viewer" });
    expect(noticeOf(answer)).toBe("heidi@example.com is added.");
  });

  test("says what is wrong with an address, and that one is there already", async () => {
    const wrong = await post("/admin/users", { email: "no address" });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("an e-mail address, such as")]);
    const again = await post("/admin/users", { email: admin.email });
    expect([again.status, await again.text()]).toEqual([
      409,
      expect.stringContaining("There is an account admin@example.com already"),
    ]);
  });
});

describe("roles", () => {
  test("change with their record, and the person's session gets another token", async () => {
    const { cookie, email, path, version } = await person(["viewer"]);
    const form = { "decided-on": String(version), role: "operator" };
    expect((await post(`${path}/roles`, form)).status).toBe(303);
    expect((await accountOf(email)).roles).toEqual(["operator"]);
    expect(await lastAct()).toMatchObject({
      action: "account.roles-changed",
      actor: admin.email,
      via: "dashboard",
      before: { roles: ["viewer"] },
      after: { roles: ["operator"] },
    });
    const next = await send(`${dashboard.url}/`, { cookie });
    expect([next.status, cookieOf(next) !== cookie]).toEqual([200, true]);
  });

  test("stay as they are where somebody changed them meanwhile, and the page says how they are", async () => {
    const { email, path, version } = await person(["viewer"]);
    await post(`${path}/roles`, { "decided-on": String(version), role: "support" });
    const late = await post(`${path}/roles`, { "decided-on": String(version), role: "finance" });
    expect([late.status, await late.text()]).toEqual([
      409,
      expect.stringMatching(/has changed since it was shown[\s\S]*support/),
    ]);
    expect((await accountOf(email)).roles).toEqual(["support"]);
  });

  test("of a form that names no version stay as they are", async () => {
    const { path } = await person(["viewer"]);
    expect((await post(`${path}/roles`, { role: "admin" })).status).toBe(409);
  });

  test("admin is taken from nobody who is the last to have it, disabled ones do not count", async () => {
    const other = await person(["admin"]);
    const own = await accountOf(admin.email);
    const disable = { "decided-on": String(other.version) };
    expect((await post(`${other.path}/disable`, disable)).status).toBe(303);
    const answer = await post(`/admin/users/${own.id}/roles`, {
      "decided-on": String(own.version),
      role: "viewer",
    });
    expect([answer.status, await answer.text()]).toEqual([
      409,
      expect.stringContaining("is the only one with the role admin"),
    ]);
    expect((await accountOf(admin.email)).roles).toEqual(["admin"]);
  });

  test("admin is not taken from the last two by each other at once", async () => {
    const [one, two] = [await person(["admin"]), await person(["admin"])];
    const own = await accountOf(admin.email);
    await database
      .db("people.accounts")
      .where({ id: own.id })
      .update({ roles: ["viewer"] });
    const take = (from: typeof one, by: typeof one) =>
      post(`${from.path}/roles`, { "decided-on": String(from.version), role: "viewer" }, by.cookie);
    const answers = await Promise.all([take(one, two), take(two, one)]);
    await database
      .db("people.accounts")
      .where({ id: own.id })
      .update({ roles: ["admin"] });
    const left = await Promise.all([one, two].map(async ({ email }) => (await accountOf(email)).roles));
    expect(left.filter((roles) => roles.includes("admin"))).toHaveLength(1);
    // Whose turn comes later is the last one, or has lost the role already. Neither waits for the other in a circle.
    expect([
      [303, 403],
      [303, 409],
    ]).toContainEqual(answers.map(({ status }) => status).toSorted((a, b) => a - b));
    for (const { email } of [one, two]) {
      await database
        .db("people.accounts")
        .where({ email })
        .update({ roles: ["viewer"] });
    }
  });
});

describe("a disabled person", () => {
  test("is out at once, gets no link, and is let in again once enabled", async () => {
    const { cookie, email, path, version } = await person(["viewer"]);
    await post(`${path}/disable`, { "decided-on": String(version) });
    expect((await send(`${dashboard.url}/`, { cookie })).status).toBe(303);
    expect((await post(`${path}/link`, {})).status).toBe(409);
    expect(await read(path)).toContain("disabled");
    await post(`${path}/enable`, { "decided-on": String((await accountOf(email)).version) });
    expect(await lastAct()).toMatchObject({ action: "account.enabled", subject: { id: email } });
    const token = tokenIn(noticeOf(await post(`${path}/link`, {})));
    expect(cookieOf(await send(`${dashboard.url}/sign-in/link?token=${token}`))).not.toBeNull();
  });

  test("is never oneself", async () => {
    const { id, version } = await accountOf(admin.email);
    const form = { "decided-on": String(version) };
    expect((await post(`/admin/users/${id}/disable`, form)).status).toBe(409);
    expect(await read(`/admin/users/${id}`)).not.toContain("/disable");
  });
});

describe("sessions", () => {
  test("of all are listed, and each is ended with its record", async () => {
    const { cookie, email } = await person(["viewer"]);
    const page = await read("/admin/sessions");
    expect(page).toContain(email);
    const row = page.split("<tr>").find((each) => each.includes(email)) ?? "";
    const [, path = ""] = /action="([^"]+)"/.exec(row) ?? [];
    expect((await post(path, {})).status).toBe(303);
    expect(await lastAct()).toMatchObject({ action: "session.ended", subject: { id: email } });
    expect((await send(`${dashboard.url}/`, { cookie })).status).toBe(303);
    expect((await post(path, {})).status).toBe(404);
  });

  test("of one person end together, but for one's own", async () => {
    const { path, cookie, email } = await person(["viewer"]);
    await signedIn(database.db, [], { email });
    expect(noticeOf(await post(`${path}/end-sessions`, {}))).toBe(`2 sessions of ${email} ended.`);
    expect((await send(`${dashboard.url}/`, { cookie })).status).toBe(303);
    const own = `/admin/users/${(await accountOf(admin.email)).id}`;
    await post(`${own}/end-sessions`, {});
    expect((await send(`${dashboard.url}/admin`, { cookie: admin.cookie })).status).toBe(200);
  });
});

describe("the audit", () => {
  const hostile = `<img src=x onerror=alert(1)>\u202Eevil\u0007`;
  beforeAll(async () => {
    const actor = { accountId: null, name: hostile, via: "command line", address: null } as const;
    await database.db.transaction(async (trx) => {
      for (let n = 1; n <= 120; n++) {
        await recordAct(trx, actor, {
          action: "event.replayed",
          subject: { kind: "event", id: String(n) },
        });
      }
      await recordAct(trx, actor, {
        action: "finding.acknowledged",
        subject: { kind: "finding", id: "7" },
        before: { state: "open" },
        after: { state: "acknowledged", [hostile]: "x".repeat(10_000) },
      });
      await recordAct(trx, actor, {
        action: "odd.done",
        subject: { kind: "constructor", id: "javascript:alert(1)" },
      });
    });
  });

  test("leads to the page of what was done something to, and reads before and after", async () => {
    const page = await read(`/admin/audit?by=${encodeURIComponent(hostile)}`);
    expect(page).toContain('href="/events/120"');
    expect(page).toContain('href="/reconciliation/findings/7"');
    expect(page).toMatch(/<del>open<\/del> →\s*<bdi\s*>acknowledged<\/bdi\s*>/);
    expect(page).not.toContain("<img");
    expect(page).not.toMatch(/href="javascript:/);
  });

  test("leads to months and reports those alone who may read them", async () => {
    const actor = { accountId: null, name: "joan", via: "dashboard", address: null } as const;
    const subject = { kind: "month", id: "2026-10" };
    await database.db.transaction((trx) => recordAct(trx, actor, { action: "month.prepared", subject }));
    const { cookie } = await signedIn(database.db, ["admin", "finance"]);
    const leads = async (who: string) =>
      (await read("/admin/audit?by=joan", who)).includes('href="/reports/close/2026-10"');
    expect([await leads(admin.cookie), await leads(cookie)]).toEqual([false, true]);
    expect(await read("/admin/audit?by=joan")).toContain("its page requires report:read");
  });

  test("leads to accounts by their addresses, and to pages of the dashboard alone", async () => {
    const actor = { accountId: null, name: "june", via: "dashboard", address: null } as const;
    const subjects = [
      { kind: "account", id: admin.email },
      { kind: "page", id: "/dunning" },
      { kind: "page", id: "//evil.example" },
    ];
    for (const subject of subjects) {
      await database.db.transaction((trx) => recordAct(trx, actor, { action: "seen", subject }));
    }
    const page = await read("/admin/audit?by=june");
    expect(page).toContain('href="/admin/users/admin%40example.com"');
    expect(page).toContain('href="/dunning"');
    expect(page).not.toContain('href="//evil');
    expect(await read("/admin/users/admin%40example.com")).toContain("<h1>admin@example.com</h1>");
  });

  test("is read page by page, each act once", async () => {
    const seen: string[] = [];
    let path: string | undefined = "/admin/audit?action=event.replayed";
    for (let pages = 0; path !== undefined && pages < 10; pages++) {
      const page: string = await read(path);
      seen.push(...[...page.matchAll(/href="\/events\/(\d+)"/g)].map(([, id = ""]) => id));
      path = /rel="next" href="([^"]+)"/.exec(page)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(seen).toEqual(Array.from({ length: 120 }, (_, n) => String(120 - n)));
  });

  test.each([
    ["kind=finding&id=7", "finding.acknowledged", true],
    ["kind=finding&id=8", "finding.acknowledged", false],
    ["action=odd.done", "odd.done", true],
    ["to=2000-01-01", "odd.done", false],
    ["from=2000-01-01&action=odd.done", "odd.done", true],
  ])("with %s shows %s: %s", async (query, action, isShown) => {
    const table = (await read(`/admin/audit?${query}`)).split("</form>").slice(1).join();
    expect(table.includes(action)).toBe(isShown);
  });

  test("refuses what is no day", async () => {
    const answer = await send(`${dashboard.url}/admin/audit?from=soon`, { cookie: admin.cookie });
    expect(answer.status).toBe(400);
  });

  test("names the command that prints the same, quoted for a shell", async () => {
    expect(await read("/admin/audit?by=a%27b&kind=event&id=3")).toContain(
      "node src/bin/tallyhook.js audit list --by &#39;a&#39;\\&#39;&#39;b&#39; --kind event --id 3",
    );
  });
});

test("settings are shown with their source and default, and no secret", async () => {
  const page = await read("/admin/settings");
  const row = (name: string): string =>
    (page.split("<tr>").find((each) => each.includes(`>${name}<`)) ?? "")
      .replaceAll(/<[^>]*>/g, " ")
      .replaceAll(/\s+/g, " ")
      .trim();
  expect(row("MAIL_FROM")).toBe("MAIL_FROM a@example.com the environment – The sender of mails.");
  expect(row("SMTP_URL")).toMatch(/^SMTP_URL set the environment – The mail server/);
  expect(row("EVENTS_KEEP_DAYS")).toMatch(/^EVENTS_KEEP_DAYS 400 the default 400 Events/);
  expect(row("SVC_API_KEY")).toMatch(/^SVC_API_KEY not set the default – The secret/);
  expect(page).not.toContain("hunter2");
  expect(page).not.toContain(database.url);
});

test("the doctor's checks are made when asked for, without the pages' limit, and kept to look at", async () => {
  expect(await read("/admin/doctor")).not.toContain("Checks");
  expect((await post("/admin/doctor", {})).status).toBe(303);
  const page = await read("/admin/doctor");
  expect(page).toContain("Checks");
  expect(page).toMatch(/schema text/);
});

test("an operator sees settings and doctor, and of the rest not even that it is there", async () => {
  const { cookie } = await person(["operator"]);
  const page = await read("/admin", cookie);
  expect(page).toContain("/admin/settings");
  expect(page).not.toContain("/admin/users");
  expect(page).not.toContain("/admin/audit");
});
