import { generate } from "otplib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ownPath } from "../../src/app/dashboard/route.ts";
import { changeAccount, createAccount, requireAccount } from "../../src/app/people/accounts.ts";
import { hashPassword } from "../../src/app/people/password.ts";
import { createSignInLink } from "../../src/app/people/sign-in-links.ts";
import { newTotpSecret } from "../../src/app/people/totp.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, cookieOf, openDashboard, send, signedIn, testEncryption } from "./dashboard-stand.ts";

const database = useTestDatabase();
const [email, password] = ["ada@example.com", "four words do not belong"];
const hours = 3_600_000;
let dashboard: DashboardStand;

beforeAll(async () => {
  dashboard = await openDashboard(database);
  // Cheap to check: most of these tests check it, and the cost has its own test.
  const passwordHash = await hashPassword(password, 10);
  await database.db.transaction(async (trx) => {
    await createAccount(trx, { email, roles: ["viewer"], passwordHash });
  });
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  await database.db("people.attempts").delete();
  dashboard.clock.set(new Date("2026-11-22T12:00:00Z"));
});

const signIn = (fields: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  send(`${dashboard.url}/sign-in`, { form: { email, password, ...fields }, headers });

const isIn = async (cookie: string | null): Promise<boolean> =>
  cookie !== null && (await send(`${dashboard.url}/`, { cookie })).status === 200;

/** What was counted, as if it had failed so often: checking a password takes time by design. */
const failedMore = (times: number) => database.db("people.attempts").increment("points", times);

const account = () => requireAccount(database.db, email);

test("a person signs in with password, is let to the page they wanted, and out again", async () => {
  const answer = await signIn({ next: "/me" });
  expect(answer.headers.get("location")).toBe("/me");
  const cookie = cookieOf(answer);
  expect(answer.headers.getSetCookie()[0]).toMatch(/; HttpOnly; SameSite=Lax$/);
  expect(await isIn(cookie)).toBe(true);
  await send(`${dashboard.url}/sign-out`, { cookie: cookie ?? "", form: {} });
  expect(await isIn(cookie)).toBe(false);
});

test("the record of a sign-in says how: a link asks for no password and no code", async () => {
  const lastMethod = async () =>
    (await database.db("people.audit").where({ action: "sign-in.done" }).orderBy("id", "desc").first())?.after;
  await signIn();
  expect(await lastMethod()).toEqual({ method: "password" });
  const { id } = await account();
  const token = await database.db.transaction((trx) => createSignInLink(trx, id, dashboard.clock.now()));
  await send(`${dashboard.url}/sign-in/link`, { form: { token } });
  expect(await lastMethod()).toEqual({ method: "link" });
});

test("the answer is the same for an unknown address, a wrong password and a disabled account", async () => {
  const { id } = await account();
  const wrong = await signIn({ password: "not this one at all" });
  const unknown = await signIn({ email: "nobody@example.com" });
  await database.db.transaction((trx) => changeAccount(trx, id, { isDisabled: true, now: new Date() }));
  const disabled = await signIn();
  await database.db.transaction((trx) => changeAccount(trx, id, { isDisabled: false, now: new Date() }));
  const said = await Promise.all(
    [wrong, unknown, disabled].map(async (answer) => [answer.status, problemOf(await answer.text())]),
  );
  expect(said).toEqual(Array(3).fill([401, "E-mail address, password or code is wrong."]));
});

const problemOf = (page: string): string => /class="problem"[^>]*>([^<]*)</.exec(page)?.[1]?.trim() ?? "";

test("after ten failures an account is let in no more, also with the right password, until the time is over", async () => {
  await signIn({ password: "wrong password" });
  await failedMore(9);
  const answer = await signIn();
  expect([answer.status, problemOf(await answer.text())]).toEqual([
    429,
    expect.stringMatching(/^Too many attempts failed\. Try again in 1\d minutes/),
  ]);
});

test("an address that fails for many accounts is let in to none", async () => {
  await signIn({ email: "guess@example.com" });
  await failedMore(29);
  expect((await signIn()).status).toBe(429);
});

test("what was typed as an address that no account has is not recorded: it may be a password", async () => {
  await signIn({ email: "hunter2-is-my-password@example.com" });
  const rows = await database.db("people.audit").where("actor", "like", "%hunter2%");
  expect(rows).toEqual([]);
  expect(await database.db("people.audit").orderBy("id", "desc").first()).toMatchObject({
    actor: "unknown",
    action: "sign-in.refused",
  });
});

describe("with an app that shows codes", () => {
  const secret = newTotpSecret();
  const codeAt = (at: Date) => generate({ secret, epoch: Math.floor(at.getTime() / 1_000) });

  beforeAll(async () => {
    const { id } = await account();
    await database.db.transaction((trx) => changeAccount(trx, id, { totp: testEncryption.encrypt(secret) }));
  });
  afterAll(async () => {
    const { id } = await account();
    await database.db.transaction((trx) => changeAccount(trx, id, { totp: null }));
  });

  test("the password alone lets nobody in, and a code counts once", async () => {
    const code = await codeAt(dashboard.clock.now());
    expect((await signIn()).status).toBe(401);
    expect((await signIn({ code: "000000" })).status).toBe(401);
    expect((await signIn({ code })).status).toBe(303);
    expect((await signIn({ code })).status).toBe(401);
    dashboard.clock.set(new Date(dashboard.clock.now().getTime() + 60_000));
    expect((await signIn({ code: await codeAt(dashboard.clock.now()) })).status).toBe(303);
  });

  test("of two requests with one code at once, one is let in", async () => {
    dashboard.clock.set(new Date("2026-11-22T13:00:00Z"));
    const code = await codeAt(dashboard.clock.now());
    const answers = await Promise.all([signIn({ code }), signIn({ code })]);
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([303, 401]);
  });
});

describe("a link to an account with an app that shows codes", () => {
  const secret = newTotpSecret();
  const code = () => generate({ secret, epoch: Math.floor(dashboard.clock.now().getTime() / 1_000) });
  const newLink = async () => {
    const { id } = await account();
    return database.db.transaction((trx) => createSignInLink(trx, id, dashboard.clock.now()));
  };
  const press = (form: Record<string, string>) => send(`${dashboard.url}/sign-in/link`, { form });

  beforeEach(async () => {
    const { id } = await account();
    await database.db.transaction((trx) => changeAccount(trx, id, { totp: testEncryption.encrypt(secret) }));
  });
  afterAll(async () => {
    const { id } = await account();
    await database.db.transaction((trx) => changeAccount(trx, id, { totp: null }));
  });

  test("asks for the code, and signs in once with it", async () => {
    const token = await newLink();
    const opened = await send(`${dashboard.url}/sign-in/link?token=${token}`, {
      headers: { "sec-fetch-site": "none" },
    });
    expect([opened.status, cookieOf(opened)]).toEqual([200, null]);
    expect(await opened.text()).toContain('name="code"');
    const unasked = await press({ token });
    expect([unasked.status, cookieOf(unasked)]).toEqual([200, null]);
    const wrong = await press({ token, code: "000000" });
    expect([wrong.status, cookieOf(wrong)]).toEqual([401, null]);
    expect(await isIn(cookieOf(await press({ token, code: await code() })))).toBe(true);
    expect((await press({ token, code: await code() })).status).toBe(403);
    // A code counts once, by whatever way.
    expect((await press({ token: await newLink(), code: await code() })).status).toBe(401);
  });

  test("counts wrong codes like those beside a password", async () => {
    const token = await newLink();
    expect((await press({ token, code: "000000" })).status).toBe(401);
    await failedMore(9);
    expect((await press({ token, code: await code() })).status).toBe(429);
    expect((await signIn({ code: await code() })).status).toBe(429);
  });
});

describe("a session", () => {
  test("ends after twelve hours without use, and after seven days with it", async () => {
    const cookie = cookieOf(await signIn());
    const began = dashboard.clock.now().getTime();
    dashboard.clock.set(new Date(began + 12 * hours - 1));
    expect(await isIn(cookie)).toBe(true);
    dashboard.clock.set(new Date(began + 24 * hours));
    expect(await isIn(cookie)).toBe(false);

    const used = cookieOf(await signIn());
    const start = dashboard.clock.now().getTime();
    for (let at = 0; at < 168; at += 8) {
      dashboard.clock.set(new Date(start + at * hours));
      expect(await isIn(used), `${at} hours`).toBe(true);
    }
    dashboard.clock.set(new Date(start + 168 * hours));
    expect(await isIn(used)).toBe(false);
  });

  test("has another token after a sign-in than one that was planted before", async () => {
    const planted = `tallyhook=${"a".repeat(43)}`;
    const answer = await send(`${dashboard.url}/sign-in`, {
      cookie: planted,
      form: { email, password },
    });
    expect(cookieOf(answer)).not.toBe(planted);
    expect(await isIn(planted)).toBe(false);
  });

  test("gets another token when roles change, and the old one ends", async () => {
    const old = cookieOf(await signIn()) ?? "";
    const { id } = await account();
    await database.db.transaction((trx) => changeAccount(trx, id, { roles: ["viewer", "operator"] }));
    const answer = await send(`${dashboard.url}/`, { cookie: old });
    const next = cookieOf(answer);
    expect([answer.status, next === old]).toEqual([200, false]);
    expect([await isIn(next), await isIn(old)]).toEqual([true, false]);
  });

  test("ends at once when its account is disabled", async () => {
    const cookie = cookieOf(await signIn());
    const { id } = await account();
    await database.db.transaction((trx) => changeAccount(trx, id, { isDisabled: true, now: new Date() }));
    expect(await isIn(cookie)).toBe(false);
    await database.db.transaction((trx) => changeAccount(trx, id, { isDisabled: false, now: new Date() }));
  });

  test("of another person cannot be ended by its id", async () => {
    const mine = await signedIn(database.db, ["viewer"]);
    const theirs = await signedIn(database.db, ["viewer"]);
    const { id } = await database
      .db("people.sessions as s")
      .join("people.accounts as a", "a.id", "s.account_id")
      .where("a.email", theirs.email)
      .first("s.id");
    const answer = await send(`${dashboard.url}/me/sessions/${id}/end`, {
      cookie: mine.cookie,
      form: {},
    });
    expect(answer.status).toBe(404);
    expect(await isIn(theirs.cookie)).toBe(true);
  });

  test("is kept as a hash: no token stands in the database", async () => {
    const cookie = cookieOf(await signIn()) ?? "";
    const token = cookie.slice("tallyhook=".length);
    const { rows } = await database.db.raw("select s::text as row from people.sessions s");
    expect(rows.filter(({ row }: { row: string }) => row.includes(token))).toEqual([]);
    expect(rows.length).toBeGreaterThan(0);
  });
});

describe("a form that is sent after the session has ended", () => {
  const sendFrom = (referer: string | null) =>
    send(`${dashboard.url}/events/replay`, {
      form: { seq: "1" },
      headers: referer === null ? {} : { referer },
    });

  test("changes nothing, and leads back to its page, which says so once", async () => {
    const asked = await sendFrom(`${dashboard.url}/me?x=1`);
    const to = asked.headers.get("location") ?? "";
    expect([asked.status, to]).toEqual([303, "/sign-in?next=%2Fme%3Fx%3D1&unsaved=yes"]);
    const page = await (await send(`${dashboard.url}${to}`)).text();
    expect(page).toContain("The change was not made: your session has ended");
    expect(page).toContain('name="unsaved" value="yes"');
    const answer = await signIn({ next: "/me?x=1", unsaved: "yes" });
    expect(answer.headers.get("location")).toBe("/me?x=1");
    const cookie = answer.headers
      .getSetCookie()
      .map((each) => each.split(";", 1)[0])
      .join("; ");
    const back = await (await send(`${dashboard.url}/me?x=1`, { cookie })).text();
    expect(back).toContain("The change was not made: your session had ended");
  });

  test.each([
    ["of another site", "https://evil.example/me", "/sign-in?unsaved=yes"],
    ["that cannot be read again", "/sign-out", "/sign-in?unsaved=yes"],
    ["that is not there", "/nowhere", "/sign-in?unsaved=yes"],
    ["that the browser does not name", null, "/sign-in?unsaved=yes"],
  ])("leads to no page %s", async (_, page, to) => {
    const referer = page?.startsWith("/") === true ? `${dashboard.url}${page}` : page;
    expect((await sendFrom(referer)).headers.get("location")).toBe(to);
  });
});

test("a form that takes a role which was lost meanwhile changes nothing, and says which role", async () => {
  const { cookie } = await signedIn(database.db, ["support", "viewer"]);
  const answer = await send(`${dashboard.url}/events/replay`, { cookie, form: { seq: "1" } });
  expect(answer.status).toBe(403);
  const text = await answer.text();
  expect(text).toContain("Nothing was changed.");
  expect(text).toContain("Your roles (support, viewer) do not allow this");
  expect(text).toContain("it requires the role operator, which has the permission event:replay");
});

test("a link signs in once, and not after ten minutes", async () => {
  const { id } = await account();
  const link = async () =>
    `${dashboard.url}/sign-in/link?token=${await database.db.transaction((trx) => createSignInLink(trx, id, dashboard.clock.now()))}`;
  const [first, late] = [await link(), await link()];
  const answer = await send(first);
  expect(await isIn(cookieOf(answer))).toBe(true);
  expect((await send(first)).status).toBe(403);
  dashboard.clock.set(new Date(dashboard.clock.now().getTime() + 600_000));
  expect((await send(late)).status).toBe(403);
});

test.each([
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["https://evil.example", "/"],
  ["/%0d%0aset-cookie:x", "/%0d%0aset-cookie:x"],
  ["/events\r\nx: y", "/"],
  ["/sign-in?next=/x", "/"],
  ["/events?state=dead", "/events?state=dead"],
  [null, "/"],
])("after a sign-in %s leads to %s", (next, leads) => {
  expect(ownPath(next)).toBe(leads);
});

test("behind a proxy with https the cookie is of this host alone and Secure, and the person's address is the proxy's word", async () => {
  const behind = await openDashboard(database, {
    publicUrl: "https://tallyhook.example.com",
    proxies: 1,
  });
  const { hostname, port } = new URL(behind.url);
  const answer = await fetch(`http://${hostname}:${port}/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: { "sec-fetch-site": "same-origin", "x-forwarded-for": "6.6.6.6, 203.0.113.9" },
    body: new URLSearchParams({ email, password }),
  });
  expect(answer.headers.getSetCookie()[0]).toMatch(
    /^__Host-tallyhook=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(answer.headers.get("strict-transport-security")).toBe("max-age=31536000");
  expect(await database.db("people.audit").orderBy("id", "desc").first()).toMatchObject({
    address: "203.0.113.9",
  });
  await behind.close();
});
