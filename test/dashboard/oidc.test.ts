import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Provider } from "oidc-provider";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { changeAccount, createAccount, requireAccount } from "../../src/app/people/accounts.ts";
import { createOidcSignIn, identityOf } from "../../src/app/people/oidc.ts";
import { freePort } from "../support/free-port.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, cookieOf, openDashboard, send } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let issuer: string;
/** Whom the provider knows the browser as. */
let person: Record<string, unknown> & { sub: string };
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  // The provider has to know where the dashboard will be.
  const proxyPort = await freePort();
  const publicUrl = `http://127.0.0.1:${proxyPort}`;
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "tallyhook",
        client_secret: "a-secret-of-the-test",
        redirect_uris: [`${publicUrl}/sign-in/oidc/callback`],
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified", "groups"] },
    conformIdTokenClaims: false,
    cookies: { keys: ["test"] },
    features: { devInteractions: { enabled: false } },
    findAccount: () => ({ accountId: person.sub, claims: () => person }),
    interactions: { url: () => "/interact" },
    pkce: { required: () => true },
  });
  const callback = provider.callback();
  server.on("request", (req, res) => {
    if (!req.url?.startsWith("/interact")) return void callback(req, res);
    void (async () => {
      const grant = new provider.Grant({ accountId: person.sub, clientId: "tallyhook" });
      grant.addOIDCScope("openid email");
      const result = { login: { accountId: person.sub }, consent: { grantId: await grant.save() } };
      await provider.interactionFinished(req, res, result);
    })();
  });
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  const oidc = createOidcSignIn(
    { db: database.db, clock: { now: () => dashboard.clock.now() } },
    {
      issuer,
      clientId: "tallyhook",
      clientSecret: "a-secret-of-the-test",
      claim: "groups",
      rolesByGroup: new Map([
        ["billing", ["finance", "viewer"]],
        ["on-call", ["operator"]],
      ]),
      publicUrl,
    },
  );
  dashboard = await openDashboard(database, { oidc });
  closers.push(() => dashboard.close());
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});
beforeEach(() => {
  person = {
    sub: "ada",
    email: "ada@example.com",
    email_verified: true,
    groups: ["billing", "lunch"],
  };
});

interface Visit {
  /** The dashboard's answer to the person who came back. */
  answer: Response;
  back: URL;
  kept: string;
}

/** What a browser does: to the provider, through its sign-in, and back. */
async function visit(next = "/me"): Promise<Visit> {
  const leaving = await send(`${dashboard.url}/sign-in/oidc?next=${encodeURIComponent(next)}`);
  const kept = leaving.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
  let url = new URL(leaving.headers.get("location") ?? "");
  const jar = new Map<string, string>();
  while (url.origin === new URL(issuer).origin) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of answer.headers.getSetCookie()) {
      const [pair = ""] = set.split(";", 1);
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    url = new URL(answer.headers.get("location") ?? "", url);
  }
  const answer = await comeBack(url, kept);
  return { answer, back: url, kept };
}

const comeBack = (url: URL, kept: string): Promise<Response> =>
  send(`${dashboard.url}${url.pathname}${url.search}`, {
    cookie: kept,
    headers: { "sec-fetch-site": "cross-site" },
  });

test("what the browser kept for the sign-in is gone once it is used", async () => {
  const { answer } = await visit();
  expect(answer.headers.getSetCookie().join()).toContain("tallyhook-kept=; Max-Age=0");
});

test("a person whom the company knows gets an account with the roles of their groups", async () => {
  const { answer } = await visit();
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/me"]);
  const page = await send(`${dashboard.url}/me`, { cookie: cookieOf(answer) ?? "" });
  expect(await page.text()).toContain("ada@example.com");
  expect(await requireAccount(database.db, "ada@example.com")).toMatchObject({
    roles: ["finance", "viewer"],
    issuer,
    hasPassword: false,
  });
});

test("roles follow the groups at the next sign-in, and the change is recorded", async () => {
  await visit();
  person = { ...person, groups: ["on-call"] };
  await visit();
  expect((await requireAccount(database.db, "ada@example.com")).roles).toEqual(["operator"]);
  const rows = await database.db("people.audit").where({ action: "account.roles-changed" });
  expect(rows.at(-1)).toMatchObject({
    before: { roles: ["finance", "viewer"] },
    after: { roles: ["operator"] },
  });
});

test.each([
  ["none of their groups has a role", { groups: ["lunch"] }, /None of your groups has a role/],
  ["their address is not verified", { email_verified: false }, /has not verified your e-mail address/],
  ["there is no address", { email: undefined }, /gave no e-mail address/],
])("a person is refused where %s", async (_, claims, says) => {
  person = { ...person, sub: `x${Math.abs(JSON.stringify(claims).length)}`, ...claims };
  const { answer } = await visit();
  expect(answer.status).toBe(403);
  expect(await answer.text()).toMatch(says);
  expect(cookieOf(answer)).toBeNull();
});

test("a person cannot become another one by taking their address at the provider", async () => {
  await visit();
  person = { ...person, sub: "mallory", groups: ["on-call"] };
  const { answer } = await visit();
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining("another person")]);
});

test("an account that was added by hand becomes that of the person with its address", async () => {
  await database.db.transaction((trx) =>
    createAccount(trx, { email: "grace@example.com", roles: ["viewer"], passwordHash: null }),
  );
  person = { sub: "grace", email: "Grace@Example.com", email_verified: true, groups: ["on-call"] };
  expect((await visit()).answer.status).toBe(303);
  expect(await requireAccount(database.db, "grace@example.com")).toMatchObject({
    issuer,
    roles: ["operator"],
  });
});

test("the last who has the role admin keeps it, whatever their groups, and is told; others lose it", async () => {
  const { db } = database;
  await db.transaction(async (trx) => {
    await createAccount(trx, { email: "hedy@example.com", roles: ["admin"], passwordHash: null });
    const gone = { email: "gone@example.com", roles: ["admin"], passwordHash: null } as const;
    const { id } = await createAccount(trx, gone);
    await changeAccount(trx, id, { isDisabled: true, now: new Date() });
  });
  person = { sub: "hedy", email: "hedy@example.com", email_verified: true, groups: ["on-call"] };
  const roles = async () => (await requireAccount(db, "hedy@example.com")).roles;
  const { answer } = await visit();
  expect(await roles()).toEqual(["operator", "admin"]);
  const page = await send(`${dashboard.url}/me`, {
    cookie: answer.headers
      .getSetCookie()
      .map((cookie) => cookie.split(";", 1)[0])
      .join("; "),
  });
  expect(await page.text()).toContain("You keep it, because no other account has it");
  await visit();
  expect(await roles()).toEqual(["operator", "admin"]);
  await db.transaction((trx) =>
    createAccount(trx, { email: "next@example.com", roles: ["admin"], passwordHash: null }),
  );
  await visit();
  expect(await roles()).toEqual(["operator"]);
});

test("a disabled account is let in by no provider", async () => {
  person = { ...person, sub: "bob", email: "bob@example.com" };
  await visit();
  const { id } = await requireAccount(database.db, "bob@example.com");
  await database.db.transaction((trx) => changeAccount(trx, id, { isDisabled: true, now: new Date() }));
  const { answer } = await visit();
  expect([answer.status, cookieOf(answer)]).toEqual([403, null]);
});

describe("what comes back", () => {
  test("is refused without what this browser has kept", async () => {
    const { back } = await visit();
    expect((await comeBack(back, "")).status).toBe(400);
  });

  test("is refused with another attempt's, and a second time", async () => {
    const first = await visit();
    const second = await visit();
    expect((await comeBack(first.back, second.kept)).status).toBe(502);
    expect((await comeBack(first.back, first.kept)).status).toBe(502);
  });

  test("leads to a page of the dashboard only", async () => {
    const { answer } = await visit("//evil.example/");
    expect(answer.headers.get("location")).toBe("/");
  });
});

test("a provider that is away is said to be, and a password still works", async () => {
  const away = createOidcSignIn(
    { db: database.db, clock: dashboard.clock },
    {
      issuer: `http://127.0.0.1:${await freePort()}`,
      clientId: "tallyhook",
      clientSecret: "a-secret-of-the-test",
      claim: "groups",
      rolesByGroup: new Map(),
      publicUrl: "http://127.0.0.1:1",
    },
  );
  const other = await openDashboard(database, { oidc: away });
  const answer = await send(`${other.url}/sign-in/oidc`);
  expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining("sign in with a password")]);
  expect((await send(`${other.url}/sign-in`)).status).toBe(200);
  await other.close();
});

test("groups may be one text or a list, and others than texts count for nothing", () => {
  const settings = { claim: "groups", rolesByGroup: new Map([["a", ["viewer" as const]]]) };
  const who = { sub: "1", email: "a@b.c", email_verified: true };
  expect(identityOf({ ...who, groups: "a" }, settings)).toMatchObject({
    ok: true,
    roles: ["viewer"],
  });
  expect(identityOf({ ...who, groups: ["b", "a", 3, null] }, settings)).toMatchObject({
    roles: ["viewer"],
  });
  expect(identityOf({ ...who, groups: [["a"]] }, settings)).toMatchObject({ ok: false });
  expect(identityOf({ ...who, groups: null }, settings)).toMatchObject({ ok: false });
});

test("an address whose letters only look like another's is that of nobody", () => {
  const settings = { claim: "groups", rolesByGroup: new Map([["a", ["admin" as const]]]) };
  const who = { sub: "1", email_verified: true, groups: "a" };
  // KELVIN SIGN, in lower case a k; and a capital I with a dot.
  for (const email of ["\u212aate@example.com", "ada@\u0130nc.example"]) {
    expect(identityOf({ ...who, email }, settings)).toMatchObject({ ok: false, email: null });
  }
  expect(identityOf({ ...who, email: "J\u00dcRG@example.com" }, settings)).toMatchObject({
    ok: true,
    email: "j\u00fcrg@example.com",
  });
});
