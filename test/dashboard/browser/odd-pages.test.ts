import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { roleNames } from "../../../src/app/people/permissions.ts";
import { chromiumAvailable } from "../../support/chromium.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "../dashboard-stand.ts";
import { useFilledDatabase } from "../filled-database.ts";
import { applyHostileObjects, hostileId, hostileTexts, spoilTexts } from "../hostile-texts.ts";
import { pagesAmong, sampleAddresses, sampleRoutes } from "../page-samples.ts";
import { inPage } from "./in-page.ts";
import { keyboardFaults } from "./keyboard.ts";
import { lookAt } from "./look-at.ts";
import { type WatchedPage, useBrowser } from "./use-browser.ts";

describe.skipIf(!chromiumAvailable)("a page in a real browser", () => {
  const browser = useBrowser();

  describe("on an empty database", () => {
    const database = useTestDatabase();
    let dashboard: DashboardStand;
    beforeAll(async () => {
      dashboard = await openDashboard(database);
    });
    afterAll(() => dashboard.close());

    test("teaches what is missing, without a fault that axe-core knows", async () => {
      const { cookie } = await signedIn(database.db, roleNames);
      const watched = await browser.open({ url: dashboard.url, cookie });
      const paths = dashboard.groups
        .flatMap(({ routes }) => routes)
        .filter(({ method, path, access }) => method === "GET" && !path.includes(":") && access !== "anyone")
        .map(({ path }) => path);
      const ask = (address: string) => send(`${dashboard.url}${address}`, { cookie });
      const known = new Set<string>();
      const faults: string[] = [];
      for (const address of await pagesAmong(paths, ask)) {
        const look = await lookAt(watched, address, known);
        faults.push(...look.faults);
        if (look.isNew) faults.push(...(await keyboardFaults(watched.page)));
        // Some pages need to be told of what they are.
        if (look.status >= 500) faults.push(`${address}: ${look.status}`);
      }
      await watched.close();
      expect(faults).toEqual([]);
    });
  });

  describe("on a database full of hostile texts", () => {
    const database = useFilledDatabase();
    let dashboard: DashboardStand;
    /** What pages said that a browser has shown: an answer in the same words has nothing new to show. */
    const shown = new Set<string>();
    let cookie: string;
    let addresses: string[];

    beforeAll(async () => {
      dashboard = await openDashboard(database, { service: database.service });
      ({ cookie } = await signedIn(database.db, roleNames));
      const ask = (address: string) => send(`${dashboard.url}${address}`, { cookie });
      addresses = await pagesAmong(await sampleAddresses(database.db, dashboard.groups), ask);
    });
    afterAll(() => dashboard.close());

    async function faultsOf(watched: WatchedPage, address: string): Promise<string[]> {
      const { status, html } = await watched.read(address);
      if (shown.has(html)) return [];
      shown.add(html);
      await watched.go(address);
      const faults = await inPage(watched.page, "hostileFaults");
      // As the page before was left: each change of the width is a layout more.
      const isNarrow = watched.page.viewportSize()?.width === 375;
      for (const width of isNarrow ? [375, 1_280] : [1_280, 375]) {
        await watched.page.setViewportSize({ width, height: 800 });
        faults.push(...(await inPage(watched.page, "sidewaysFaults")));
      }
      faults.push(...watched.complaints());
      if (status >= 500) faults.push(`answers ${status}`);
      return faults.map((fault) => `${address.slice(0, 60)}: ${fault}`);
    }

    test.each(Object.keys(hostileTexts) as (keyof typeof hostileTexts)[])(
      "shows texts as they are, and keeps its form: %s",
      async (name) => {
        await spoilTexts(database.db, hostileTexts[name]);
        const watched = await browser.open({ url: dashboard.url, cookie });
        const faults: string[] = [];
        for (const address of addresses) faults.push(...(await faultsOf(watched, address)));
        await watched.close();
        expect(faults).toEqual([]);
      },
    );

    test("leads by hostile ids to the objects that have them, and nowhere else", async () => {
      await applyHostileObjects(database.db);
      const watched = await browser.open({ url: dashboard.url, cookie });
      const faults: string[] = [];
      const part = encodeURIComponent(hostileId);
      const routes = await sampleRoutes(database.db, dashboard.groups);
      const byId = routes
        .filter(({ method, path }) => method === "GET" && /\/:\w*id$/i.test(path))
        .map(({ address }) => address?.replace(/[^/]+$/, part) ?? "");
      const lists = addresses.filter((address) => !/\/[\w-]*\d[\w-]*$/.test(address));
      for (const address of [...byId, ...lists]) faults.push(...(await faultsOf(watched, address)));
      await watched.close();
      expect(faults).toEqual([]);
    });

    test.each(Object.values(hostileTexts))("is not changed by what an address says", async (text) => {
      const watched = await browser.open({ url: dashboard.url, cookie });
      const faults: string[] = [];
      const said = encodeURIComponent(text.slice(0, 1_000));
      for (const address of addresses) {
        const page = await (await send(`${dashboard.url}${address}`, { cookie })).text();
        const names = new Set([...page.matchAll(/<(?:input|select)[^>]*\sname="([\w.-]+)"/g)].map(([, each]) => each));
        if (names.size === 0) continue;
        const query = [...names].map((each) => `${each}=${said}`).join("&");
        faults.push(...(await faultsOf(watched, `${address.split("?", 1)[0]}?${query}`)));
      }
      await watched.close();
      expect(faults).toEqual([]);
    });
  });
});
