import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { roleNames } from "../../src/app/people/permissions.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { freePort } from "../support/free-port.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let cookie: string;

beforeAll(async () => {
  // So long ago that its use is noted.
  const now = new Date("2026-11-22T11:00:00Z");
  ({ cookie } = await signedIn(database.db, roleNames, { now }));
});

/** A dashboard whose database is as `change` makes its address. */
function useDashboard(change: (url: URL) => Promise<void> | void): () => string {
  let dashboard: DashboardStand;
  let db: ReturnType<typeof createDatabase>;
  beforeAll(async () => {
    const url = new URL(database.directUrl);
    await change(url);
    db = createDatabase({ url: url.href, poolMax: 4, applicationName: "dashboard outage" });
    dashboard = await openDashboard({ db, environment: database.environment });
  });
  afterAll(async () => {
    await dashboard.close();
    await db.destroy();
  });
  return () => dashboard.url;
}

const said = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  /class="problem"[^>]*>([^<]*)</.exec(await answer.text())?.[1]?.trim() ?? "",
];

describe("while the database is away", () => {
  const url = useDashboard(async (address) => {
    address.port = String(await freePort());
  });

  test.each(["/", "/me", "/events"])("the page %s says so, and what to do", async (path) => {
    expect(await said(await send(`${url()}${path}`, { cookie }))).toEqual([
      503,
      expect.stringMatching(/^The database does not answer[^]*Try again/),
    ]);
  });

  test("who wants to sign in is told so as well", async () => {
    const form = { email: "ada@example.com", password: "four words do not belong" };
    expect(await said(await send(`${url()}/sign-in`, { form }))).toEqual([
      503,
      expect.stringMatching(/^The database does not answer/),
    ]);
  });
});

describe("while the database only reads, as a standby does", () => {
  const url = useDashboard((address) => {
    address.searchParams.set("options", "-c default_transaction_read_only=on");
  });

  test("a page says so", async () => {
    expect(await said(await send(`${url()}/me`, { cookie }))).toEqual([
      503,
      expect.stringMatching(/is read-only \(25006\)/),
    ]);
  });
});

describe("a change that waits for another for too long", () => {
  const url = useDashboard((address) => {
    address.searchParams.set("options", "-c statement_timeout=300");
  });

  test("is not told to narrow a filter", async () => {
    const lock = await database.db.transaction();
    await lock.raw("lock table people.sessions in share mode");
    const answer = await send(`${url()}/me/sessions/end-others`, { cookie, form: {} });
    await lock.rollback();
    expect(await said(answer)).toEqual([503, expect.stringMatching(/^(?!.*filter).*Check the page/)]);
  });
});
