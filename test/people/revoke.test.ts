import { generate } from "otplib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { registerUsers } from "../../src/main/cli/users.ts";
import { changeAccount, createAccount } from "../../src/app/people/accounts.ts";
import { hashPassword } from "../../src/app/people/password.ts";
import { type Revoking, revocations } from "../../src/app/people/revoke.ts";
import { createSignIn } from "../../src/app/people/sign-in.ts";
import { createSignInLink } from "../../src/app/people/sign-in-links.ts";
import { newTotpSecret } from "../../src/app/people/totp.ts";
import {
  type DashboardStand,
  cookieOf,
  openDashboard,
  send,
  signedIn,
  testEncryption,
} from "../dashboard/dashboard-stand.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
const [email, password] = ["ada@example.com", "four words do not belong"];
const now = new Date("2026-11-22T12:00:00Z");
let passwordHash: string;
let dashboard: DashboardStand;
/** Ada's account, her two browsers, a link that she has not used, and somebody with the role admin. */
let [accountId, mine, other, link, admin] = [0, "", "", "", ""];

beforeAll(async () => {
  dashboard = await openDashboard(database);
  passwordHash = await hashPassword(password, 10);
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  const { db } = database;
  await emptyTables(db, ["people.accounts", "people.attempts"]);
  admin = (await signedIn(db, ["admin"])).cookie;
  ({ id: accountId } = await db.transaction((trx) => createAccount(trx, { email, roles: ["viewer"], passwordHash })));
  mine = (await signedIn(db, [], { email })).cookie;
  other = (await signedIn(db, [], { email })).cookie;
  link = await db.transaction((trx) => createSignInLink(trx, accountId, now));
});

/** What of the three is stored: nothing else signs anybody in. */
async function left(): Promise<string[]> {
  const has = async (table: string, token: string) => {
    const { rows } = await database.db.raw(`select from ${table} where token_hash = sha256(convert_to(?, 'UTF8'))`, [
      token,
    ]);
    return rows.length > 0;
  };
  const stored = {
    mine: await has("people.sessions", mine.slice("tallyhook=".length)),
    other: await has("people.sessions", other.slice("tallyhook=".length)),
    link: await has("people.sign_in_links", link),
  };
  return Object.entries(stored).flatMap(([name, isStored]) => (isStored ? [name] : []));
}

async function users(args: string, stdin?: string): Promise<void> {
  const { error } = await runCommand(registerUsers, ["users", ...args.split(" ")], {
    env: { DATABASE_URL: database.url, TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32) },
    ...(stdin === undefined ? {} : { stdin }),
  });
  expect(error).toBeNull();
}

async function post(path: string, cookie: string, form: Record<string, string> = {}) {
  const answer = await send(`${dashboard.url}${path}`, { cookie, form });
  expect(answer.status).toBe(303);
  return answer;
}

async function idOf(cookie: string): Promise<string> {
  const { rows } = await database.db.raw(
    "select id from people.sessions where token_hash = sha256(convert_to(?, 'UTF8'))",
    [cookie.slice("tallyhook=".length)],
  );
  return rows[0].id as string;
}

interface Case {
  left: readonly ("mine" | "other" | "link")[];
  doors: Readonly<Record<string, () => Promise<unknown>>>;
}

/** By event, what is left of the three credentials after it, by each door that leads to it. */
const cases: Readonly<Record<Revoking, Case>> = {
  "account.disabled": { left: [], doors: { command: () => users(`disable ${email}`) } },
  "account.enabled": {
    left: [],
    doors: {
      async command() {
        await database.db("people.accounts").where({ email }).update({ disabled_at: now });
        await users(`enable ${email}`);
      },
    },
  },
  "account.password-changed": {
    left: [],
    doors: { command: () => users(`password ${email}`, "another set of four words\n") },
  },
  "account.totp-added": { left: [], doors: { command: () => users(`totp ${email}`) } },
  "account.totp-removed": { left: [], doors: { command: () => users(`totp ${email} --remove`) } },
  "account.roles-changed": {
    left: ["mine", "other", "link"],
    doors: { command: () => users(`roles ${email} --role support`) },
  },
  "session.ended": {
    left: ["mine"],
    doors: {
      person: async () => post(`/me/sessions/${await idOf(other)}/end`, mine),
      admin: async () => post(`/admin/sessions/${await idOf(other)}/end`, admin),
    },
  },
  "other-sessions.ended": {
    left: ["mine"],
    doors: {
      person: () => post("/me/sessions/end-others", mine),
      async admin() {
        await database
          .db("people.accounts")
          .where({ email })
          .update({ roles: ["admin"] });
        const renewed = await send(`${dashboard.url}/me`, { cookie: mine });
        mine = cookieOf(renewed) ?? mine;
        await post(`/admin/users/${accountId}/end-sessions`, mine);
      },
    },
  },
  "sign-out.done": { left: ["other", "link"], doors: { person: () => post("/sign-out", mine) } },
  "sign-in.done": {
    left: ["other", "link"],
    doors: {
      password: () => post("/sign-in", mine, { email, password }),
      async link() {
        const used = await database.db.transaction((trx) => createSignInLink(trx, accountId, now));
        await post("/sign-in/link", mine, { token: used });
      },
      async "password of somebody else"() {
        const theirs = "bob@example.com";
        await database.db.transaction((trx) => createAccount(trx, { email: theirs, roles: ["viewer"], passwordHash }));
        await post("/sign-in", mine, { email: theirs, password });
      },
    },
  },
};

test.each(
  Object.entries(cases).flatMap(([event, { doors, ...rest }]) =>
    Object.entries(doors).map(([door, go]) => ({ event, door, go, ...rest })),
  ),
)("after $event by $door, of two sessions and a link $left are left", async (each) => {
  await each.go();
  expect(await left()).toEqual(each.left);
});

test("an admin who ends all sessions of somebody else leaves them nothing", async () => {
  await post(`/admin/users/${accountId}/end-sessions`, admin);
  expect(await left()).toEqual([]);
});

test("nobody ends a session of another person as their own", async () => {
  const { cookie } = await signedIn(database.db, ["viewer"]);
  await send(`${dashboard.url}/me/sessions/${await idOf(other)}/end`, { cookie, form: {} });
  expect(await left()).toEqual(["mine", "other", "link"]);
});

test("a session that is not there ends nothing", async () => {
  const answer = await send(`${dashboard.url}/me/sessions/none/end`, { cookie: mine, form: {} });
  expect([answer.status, await left()]).toEqual([404, ["mine", "other", "link"]]);
});

test("each event has a rule for each credential", () => {
  expect(Object.keys(revocations).sort()).toEqual(Object.keys(cases).sort());
});

test.each<[string, () => Promise<Response>]>([
  ["signs in otherwise", () => post("/sign-in", mine, { email, password })],
  ["signs out", () => post("/sign-out", mine)],
])("a company's sign-in that was begun ends in a browser that %s", async (_, go) => {
  expect((await go()).headers.getSetCookie().join()).toContain("tallyhook-kept=; Max-Age=0");
});

test("a sign-in that began before a new password does not outlive it", async () => {
  const { db } = database;
  const secret = newTotpSecret();
  await db.transaction((trx) => changeAccount(trx, accountId, { totp: testEncryption.encrypt(secret) }));
  // Between the reading of the password and the beginning of the session.
  const encryption = async () => {
    await users(`password ${email}`, "another set of four words\n");
    return testEncryption;
  };
  const { signIn } = createSignIn({ db, clock: { now: () => now }, encryption });
  const code = await generate({ secret, epoch: now.getTime() / 1_000 });
  const from = { address: "127.0.0.1", userAgent: "test", replaces: null };
  expect(await signIn({ email, password, code, ...from })).toEqual({ ok: false, reason: "wrong" });
  expect(await left()).toEqual([]);
  expect(await db("people.sessions").where({ account_id: accountId })).toEqual([]);
});
