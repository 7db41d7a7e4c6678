import { afterAll, beforeAll, expect, test } from "vitest";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let cookie: string;

beforeAll(async () => {
  dashboard = await openDashboard(database);
  ({ cookie } = await signedIn(database.db, ["viewer"]));
});
afterAll(() => dashboard.close());

/** The cookies of a browser that has chosen, and what the answer was. */
async function choose(theme: string): Promise<{ status: number; set: string; cookies: string }> {
  const answer = await send(`${dashboard.url}/me/theme`, { cookie, form: { theme } });
  const [set = ""] = answer.headers.getSetCookie().filter((each) => /-theme=/.test(each));
  return { status: answer.status, set, cookies: `${cookie}; ${set.split(";", 1)[0]}` };
}

const headOf = async (cookies: string, path = "/me"): Promise<string> =>
  (await (await send(`${dashboard.url}${path}`, { cookie: cookies })).text()).split("</head>")[0] ?? "";

test.each(["light", "dark"])("%s is in the first bytes of each page, so that nothing flashes", async (theme) => {
  const { status, set, cookies } = await choose(theme);
  expect([status, set]).toEqual([303, expect.stringMatching(/Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax$/)]);
  for (const path of ["/me", "/", "/no/such/page"]) {
    const head = await headOf(cookies, path);
    expect(head, path).toContain(`<html lang="en" class="${theme}">`);
    expect(head, path).toContain(`<meta name="color-scheme" content="${theme}" />`);
  }
  // Also for somebody who has signed out.
  expect(await headOf(cookies.replace(/^[^;]+; /, ""), "/sign-in")).toContain(`class="${theme}"`);
  const page = await (await send(`${dashboard.url}/me`, { cookie: cookies })).text();
  expect(page).toMatch(new RegExp(`value="${theme}"\\s+checked`));
});

test("as the system is forgets the choice", async () => {
  const { set } = await choose("system");
  expect(set).toMatch(/=; Max-Age=0/);
  expect(await headOf(cookie)).toContain('content="light dark"');
});

test.each(["blue", "", '"><script>'])("%j is no choice, and as a cookie it changes nothing", async (theme) => {
  expect((await choose(theme)).status).toBe(400);
  const head = await headOf(`${cookie}; tallyhook-theme=${encodeURIComponent(theme)}`);
  expect(head).toMatch(/<html lang="en"\s*>/);
});

test.each([
  { serviceAheadMs: 0, says: "This is the sandbox." },
  { serviceAheadMs: 4 * 86_400_000, says: "This is the sandbox. Its clock says 2026-11-26 12:00 UTC, 4 days ahead of" },
  { serviceAheadMs: -3_600_000, says: "This is the sandbox. Its clock says 2026-11-22 11:00 UTC, 1 hour behind" },
])("a sandbox's clock that was moved is named beside ours: $serviceAheadMs ms", async ({ serviceAheadMs, says }) => {
  const moved = await openDashboard(database, { serviceAheadMs, banner: "This is the sandbox." });
  try {
    const page = await (await send(`${moved.url}/me`, { cookie })).text();
    const [, banner = ""] = /<aside class="banner"[^>]*>([^<]*)</.exec(page) ?? [];
    expect(banner.trim().startsWith(says)).toBe(true);
    expect(banner.includes("clock")).toBe(serviceAheadMs !== 0);
  } finally {
    await moved.close();
  }
});
