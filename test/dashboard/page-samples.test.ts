import { afterAll, beforeAll, expect, test } from "vitest";
import { roleNames } from "../../src/app/people/permissions.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";
import { useFilledDatabase } from "./filled-database.ts";
import { sampleAddresses, sampleRoutes } from "./page-samples.ts";

const database = useFilledDatabase();
let dashboard: DashboardStand;

beforeAll(async () => {
  await signedIn(database.db, ["viewer"]);
  dashboard = await openDashboard(database, { service: database.service });
});
afterAll(() => dashboard.close());

test("every route has a real address, with which browsers and attackers try it", async () => {
  const routes = await sampleRoutes(database.db, dashboard.groups);
  const lacking = routes.flatMap(({ method, path, address }) =>
    address === null ? [`${method} ${path}: add it to test/dashboard/page-samples.ts`] : [],
  );
  expect(lacking).toEqual([]);
});

test("every page opens for somebody with all roles, on a filled database", async () => {
  const { cookie } = await signedIn(database.db, roleNames);
  const failed: unknown[] = [];
  for (const address of await sampleAddresses(database.db, dashboard.groups)) {
    const { status } = await send(`${dashboard.url}${address}`, { cookie });
    if (status !== 200) failed.push({ address, status });
  }
  expect(failed).toEqual([]);
});
