import { afterAll, beforeAll, expect, test } from "vitest";
import { changeAccount, createAccount, requireAccount } from "../../src/app/people/accounts.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, cookieOf, openDashboard, send } from "./dashboard-stand.ts";

const database = useTestDatabase();
const secret = "what only the proxy knows";
let dashboard: DashboardStand;
let elsewhere: DashboardStand;

beforeAll(async () => {
  await database.db.transaction(async (trx) => {
    for (const email of ["ada@example.com", "bob@example.com"]) {
      await createAccount(trx, { email, roles: ["viewer"], passwordHash: null });
    }
  });
  const settings = { header: "x-forwarded-email", secret };
  dashboard = await openDashboard(database, {
    proxySignIn: { ...settings, peers: ["127.0.0.1"] },
  });
  elsewhere = await openDashboard(database, {
    proxySignIn: { ...settings, peers: ["10.0.0.5"] },
  });
});
afterAll(() => Promise.all([dashboard.close(), elsewhere.close()]));

const as = (email: string, proxySecret = secret) => ({
  "x-forwarded-email": email,
  "x-tallyhook-proxy-secret": proxySecret,
});

const account = (stand: DashboardStand, headers: Record<string, string>, cookie?: string) =>
  send(`${stand.url}/me`, { headers, ...(cookie === undefined ? {} : { cookie }) });

test("whom the proxy names is signed in, in a session of their own", async () => {
  const answer = await account(dashboard, as("Ada@example.com"));
  expect([answer.status, (await answer.text()).includes("ada@example.com")]).toEqual([200, true]);
  const cookie = cookieOf(answer) ?? "";
  const again = await account(dashboard, as("ada@example.com"), cookie);
  expect([again.status, cookieOf(again)]).toEqual([200, null]);
});

test.each([
  ["with another secret", as("ada@example.com", "a guess of somebody else")],
  ["without a secret", { "x-forwarded-email": "ada@example.com" }],
  ["with no address in it", as("ada")],
  ["for a person without an account", as("eve@example.com")],
])("a header counts for nothing %s", async (_, headers) => {
  expect((await account(dashboard, headers)).status).toBe(303);
});

test("a header counts for nothing from an address that is not listed", async () => {
  expect((await account(elsewhere, as("ada@example.com"))).status).toBe(303);
});

test("a session that the proxy began is over when the proxy names nobody, or another person", async () => {
  const cookie = cookieOf(await account(dashboard, as("ada@example.com"))) ?? "";
  expect((await account(dashboard, {}, cookie)).status).toBe(303);
  const other = await account(dashboard, as("bob@example.com"), cookie);
  expect(await other.text()).toContain("bob@example.com");
});

test("a disabled person is let in by no proxy", async () => {
  const { id } = await requireAccount(database.db, "bob@example.com");
  await database.db.transaction((trx) => changeAccount(trx, id, { isDisabled: true, now: new Date() }));
  expect((await account(dashboard, as("bob@example.com"))).status).toBe(303);
});
