import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Role, roleNames } from "../../../src/app/people/permissions.ts";
import { chromiumAvailable } from "../../support/chromium.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "../dashboard-stand.ts";
import { useFilledDatabase } from "../filled-database.ts";
import { pagesAmong, sampleAddresses } from "../page-samples.ts";
import { keyboardFaults } from "./keyboard.ts";
import { lookAt } from "./look-at.ts";
import { type WatchedPage, useBrowser } from "./use-browser.ts";

describe.skipIf(!chromiumAvailable)("a page in a real browser, on a filled database", () => {
  const database = useFilledDatabase();
  const browser = useBrowser();
  /** What was looked at: what roles see is often the same. */
  const known = new Set<string>();
  let dashboard: DashboardStand;
  let addresses: readonly string[];

  beforeAll(async () => {
    dashboard = await openDashboard(database, { service: database.service });
    const { cookie } = await signedIn(database.db, roleNames);
    const ask = (address: string) => send(`${dashboard.url}${address}`, { cookie });
    addresses = await pagesAmong(await sampleAddresses(database.db, dashboard.groups), ask);
  });
  afterAll(() => dashboard.close());

  async function openFor(roles: readonly Role[]): Promise<WatchedPage> {
    const { cookie } = await signedIn(database.db, roles);
    return browser.open({ url: dashboard.url, cookie });
  }

  test.each(roleNames)(
    "has no fault that axe-core knows, scrolls sideways nowhere and breaks no rule of its own: %s",
    async (role) => {
      const watched = await openFor([role]);
      const faults: string[] = [];
      for (const address of addresses) {
        const look = await lookAt(watched, address, known);
        faults.push(...look.faults);
        if (look.status >= 500) faults.push(`${address}: ${look.status}`);
      }
      await watched.close();
      expect(faults).toEqual([]);
    },
  );

  test("has none of these faults before a person has signed in, and where there is no such page", async () => {
    const stranger = await browser.open({ url: dashboard.url });
    const faults = [];
    for (const address of ["/sign-in", "/sign-in/link?token=x", "/sign-in?next=/events"]) {
      faults.push(...(await lookAt(stranger, address, known)).faults);
    }
    await stranger.close();
    const viewer = await openFor(["viewer"]);
    faults.push(...(await lookAt(viewer, "/no-such-page", known)).faults);
    await viewer.close();
    expect(faults).toEqual([]);
  });

  test("is usable by keyboard alone: Tab reaches everything in order, shows where it is, and gets stuck nowhere", async () => {
    const watched = await openFor(roleNames);
    const faults: string[] = [];
    for (const address of addresses) {
      await watched.go(address);
      faults.push(...(await keyboardFaults(watched.page)).map((fault) => `${address}: ${fault}`));
    }
    await watched.close();
    expect(faults).toEqual([]);
  });

  test("begins with a link that leads past the pages at its side, straight to its content", async () => {
    const watched = await openFor(["viewer"]);
    const { page } = watched;
    await watched.go("/events");
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").textContent()).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await page.locator(":focus").getAttribute("id")).toBe("content");
    await page.keyboard.press("Tab");
    expect(await page.locator("main :focus").count()).toBe(1);
    await watched.close();
  });
});
