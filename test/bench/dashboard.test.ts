import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pageTargets } from "../../bench/dashboard.ts";
import { kindOf, limitsMs, measurePages, pagesOf, signIn } from "../../bench/support/dashboard-pages.ts";
import { fillYear } from "../../bench/support/fill-year.ts";
import { fillGrownInbox } from "../../bench/support/grown-inbox.ts";
import { fillTraces, peopleLookAt } from "../../bench/support/grown-traces.ts";
import { roleNames } from "../../src/app/people/permissions.ts";
import { type DashboardStand, openDashboard } from "../dashboard/dashboard-stand.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const grown = { orders: 2_500, events: 2_500 };
let dashboard: DashboardStand;

beforeAll(async () => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await fillYear(client, grown.orders, () => {});
  await fillGrownInbox(client, grown);
  await fillTraces(client, grown);
  await client.end();
  dashboard = await openDashboard(database);
  dashboard.clock.set(peopleLookAt);
}, 60_000);
afterAll(() => dashboard.close());

test(
  "pages of a small grown database open, and are measured for those who may see them",
  { timeout: 60_000 },
  async () => {
    const { db } = database;
    const { url } = dashboard;
    const cookie = await signIn(db, roleNames, peopleLookAt);
    const found = await pagesOf(db, dashboard.groups, { url, cookie }, ["page"]);
    expect(found.length).toBeGreaterThan(60);
    const addresses = ["/", "/events", "/admin/users"];
    const pages = await measurePages(db, { url, pids: {} }, { addresses, times: 1, now: peopleLookAt, say: () => {} });
    const byAddress = new Map(pages.map((page) => [page.address, page]));
    expect(byAddress.get("/")?.times).toHaveLength(roleNames.length);
    expect(byAddress.get("/admin/users")?.times).toHaveLength(1);
    expect(byAddress.get("/events")?.times.every((ms) => ms > 0)).toBe(true);
  },
);

test("a page that reads a report has the limit of reports, and the service's page has none", () => {
  expect(["/reports/month-end?from=2024-10", "/reports/close/2024-10", "/endpoint", "/events"].map(kindOf)).toEqual([
    "report",
    "page",
    "service",
    "page",
  ]);
});

test("the slowest page decides, and a limit is missed by any of them", () => {
  const page = (address: string, ms: number) => ({
    address,
    kind: "page" as const,
    times: [1, ms],
    cpuMs: {},
  });
  const late = limitsMs.page + 20;
  expect(pageTargets([page("/a", 5), page("/b", late), page("/c", 9)])).toEqual([
    expect.objectContaining({
      what: "p95 of the slowest of 3, page (/b)",
      measured: `${late} ms; 1 are slower than wanted`,
      reached: false,
    }),
  ]);
});
