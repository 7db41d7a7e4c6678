import { generate } from "otplib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { registerUsers } from "../../../src/main/cli/users.ts";
import { type Account, findAccount, findCredentials } from "../../../src/app/people/accounts.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { isPassword } from "../../../src/app/people/password.ts";
import { type DashboardStand, cookieOf, openDashboard, send, signedIn } from "../../dashboard/dashboard-stand.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { type CommandRun, runCommand } from "./command-line.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
const [email, password] = ["ada@example.com", "four words do not belong"];
let dashboard: DashboardStand;
beforeAll(async () => {
  dashboard = await openDashboard(database);
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  await emptyTables(database.db, ["people.accounts", "people.attempts"]);
});

const users = (
  args: string[],
  given: { stdin?: string; terminal?: boolean; user?: { name: string; sudoUser: null } } = {},
): Promise<CommandRun> =>
  runCommand(registerUsers, ["users", ...args], {
    env: { DATABASE_URL: database.url, TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32) },
    ...given,
  });

async function done(args: string[], stdin?: string): Promise<string> {
  const { out, error } = await users(args, stdin === undefined ? {} : { stdin });
  expect(error).toBeNull();
  return out;
}

const account = (): Promise<Account | null> => findAccount(database.db, email);
const added = (...roles: string[]) =>
  done(["add", email, "--no-password", ...roles.flatMap((role) => ["--role", role])]);

const lastAct = async () => (await readAudit(database.db, { limit: 1 }))[0];

describe("add", () => {
  test("takes the password from standard input, and keeps only its hash", async () => {
    const out = await done(["add", email, "--role", "viewer", "--by", "bob"], `${password}\n`);
    expect(out).toBe(`${email} can sign in, with the role viewer.\n`);
    const stored = (await findCredentials(database.db, email))?.credentials.passwordHash ?? null;
    expect(stored).not.toContain(password);
    expect(await isPassword(password, stored)).toBe(true);
    expect(await lastAct()).toMatchObject({
      action: "account.added",
      actor: "bob",
      via: "command line",
      subject: { kind: "account", id: email },
      after: { roles: ["viewer"] },
    });
  });

  test.each([
    ["too short", "Use 12 to 200"],
    ["Password1234", "one of those that attackers try first"],
    ["my ada@example.com", "derived from the e-mail address"],
  ])("refuses the password %s, and adds nobody", async (weak, reason) => {
    const { error, out, err } = await users(["add", email, "--role", "viewer"], { stdin: weak });
    expect(String(error)).toContain(reason);
    expect(out + err + String(error)).not.toContain(weak);
    expect(await account()).toBeNull();
  });

  test("does nothing where no password comes", async () => {
    const { error } = await users(["add", email, "--role", "viewer"], { stdin: "" });
    expect(String(error)).toContain("Nothing was typed");
    expect(await account()).toBeNull();
  });

  test.each([
    [["add", "no-address", "--role", "viewer"], "an e-mail address, such as"],
    [["add", email, "--role", "viewr"], 'Did you mean "viewer"?'],
    [["add", email], "required option '--role"],
  ])("refuses %j", async (args, reason) => {
    const { error, err } = await users([...args, "--no-password"]);
    expect(String(error) + err).toContain(reason);
    expect(await account()).toBeNull();
  });

  test("refuses an address that is there, whatever its case", async () => {
    await added("viewer");
    const { error } = await users(["add", "Ada@Example.com", "--role", "admin", "--no-password"]);
    expect(String(error)).toContain("There is an account ada@example.com already");
    expect((await account())?.roles).toEqual(["viewer"]);
  });

  test("asks for a name where the system's user is no person", async () => {
    const { error } = await users(["add", email, "--role", "viewer", "--no-password"], {
      user: { name: "root", sudoUser: null },
    });
    expect(String(error)).toContain('--by "Your Name"');
    expect(await account()).toBeNull();
  });
});

test("roles replaces all of them, and records which they were", async () => {
  await added("viewer", "support");
  await done(["roles", email, "--role", "finance"]);
  expect((await account())?.roles).toEqual(["finance"]);
  expect(await lastAct()).toMatchObject({
    before: { roles: ["viewer", "support"] },
    after: { roles: ["finance"] },
  });
});

test("password replaces the former one and ends every session", async () => {
  await added("viewer");
  const { cookie } = await signedIn(database.db, [], { email });
  await done(["password", email], "another set of four words\n");
  expect((await send(`${dashboard.url}/`, { cookie })).status).toBe(303);
  const form = { email, password: "another set of four words" };
  expect(cookieOf(await send(`${dashboard.url}/sign-in`, { form }))).not.toBeNull();
});

test("totp shows its secret once, and from then on a sign-in takes its code", async () => {
  await done(["add", email, "--role", "viewer"], `${password}\n`);
  const out = await done(["totp", email]);
  const secret = /secret=([A-Z2-7]+)/.exec(out)?.[1] ?? "";
  expect(JSON.stringify(await readAudit(database.db, { limit: 10 }))).not.toContain(secret);
  const signIn = (code: string) => send(`${dashboard.url}/sign-in`, { form: { email, password, code } });
  expect((await signIn("")).status).toBe(401);
  const epoch = Math.floor(dashboard.clock.now().getTime() / 1_000);
  expect(cookieOf(await signIn(await generate({ secret, epoch })))).not.toBeNull();
  await done(["totp", email, "--remove"]);
  expect(cookieOf(await signIn(""))).not.toBeNull();
});

test("disable ends the sessions of a running dashboard at once, and enable lets in again", async () => {
  await added("viewer");
  const { cookie } = await signedIn(database.db, [], { email });
  expect((await send(`${dashboard.url}/`, { cookie })).status).toBe(200);
  await done(["disable", email]);
  // The next request, however soon.
  expect((await send(`${dashboard.url}/`, { cookie })).status).toBe(303);
  expect(String((await users(["link", email])).error)).toContain("is disabled");
  await done(["enable", email]);
  const { cookie: later } = await signedIn(database.db, [], { email });
  expect((await send(`${dashboard.url}/`, { cookie: later })).status).toBe(200);
});

test("link signs in once", async () => {
  await added("viewer");
  const out = await done(["link", email]);
  const token = /^http:\/\/127\.0\.0\.1:3002\/sign-in\/link\?token=([\w-]{43})\n$/.exec(out)?.[1];
  await database.db("people.sign_in_links").update({ expires_at: new Date("2999-01-01") });
  const link = `${dashboard.url}/sign-in/link?token=${token}`;
  const sent = { headers: { "sec-fetch-site": "none" } };
  expect(cookieOf(await send(link, sent))).not.toBeNull();
  expect((await send(link, sent)).status).toBe(403);
});

test("a link is made without a name where the system's user is no person, and the record has the user", async () => {
  await added("viewer");
  const { out, error } = await users(["link", email], { user: { name: "root", sudoUser: null } });
  expect(error).toBeNull();
  expect(out).toContain("/sign-in/link?token=");
  expect(await lastAct()).toMatchObject({
    action: "sign-in-link.made",
    actor: "system user root",
  });
});

test.each([["roles", "--role", "viewer"], ["disable"]])(
  "%s takes the role admin from nobody who is the last to have it",
  async (command, ...options) => {
    await added("admin", "finance");
    const refused = await users([command, email, ...options]);
    expect(String(refused.error)).toContain("is the only one with the role admin");
    expect(await account()).toMatchObject({ roles: ["admin", "finance"], disabledAt: null });
    await done(["add", "next@example.com", "--no-password", "--role", "admin"]);
    await done([command, email, ...options]);
  },
);

test("list and show say who is there and how they sign in, and nothing secret", async () => {
  expect(await done(["list"])).toContain("No one can sign in yet");
  await done(["add", email, "--role", "operator"], `${password}\n`);
  await signedIn(database.db, [], { email, now: new Date() });
  const shown = (await done(["list"])) + (await done(["list", "--json"])) + (await done(["show", email]));
  expect(shown).toContain("signs in with: password");
  expect(shown).toContain("event:replay: apply events again");
  expect(shown).toContain("1 session\n");
  expect(shown).not.toContain("scrypt");
});

test.each([["roles", "--role", "viewer"], ["password"], ["totp"], ["disable"], ["enable"], ["link"]])(
  "%s of an address that is not there names the nearest",
  async (name, ...rest) => {
    await added("viewer");
    const { error } = await users([name, "adda@example.com", ...rest]);
    expect(String(error)).toContain("Did you mean ada@example.com?");
  },
);
