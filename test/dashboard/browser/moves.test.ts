import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAccount, findAccount } from "../../../src/app/people/accounts.ts";
import { type Role, roleNames } from "../../../src/app/people/permissions.ts";
import { createSignInLink } from "../../../src/app/people/sign-in-links.ts";
import { chromiumAvailable } from "../../support/chromium.ts";
import { type DashboardStand, openDashboard, signedIn } from "../dashboard-stand.ts";
import { useFilledDatabase } from "../filled-database.ts";
import { accessibilityFaults } from "./accessibility.ts";
import { type WatchedPage, useBrowser } from "./use-browser.ts";

const database = useFilledDatabase();
let dashboard: DashboardStand;
beforeAll(async () => {
  dashboard = await openDashboard(database, { service: database.service });
});
afterAll(() => dashboard.close());

describe.skipIf(!chromiumAvailable)("keys", () => {
  const browser = useBrowser();
  let watched: WatchedPage;
  beforeAll(async () => {
    const { cookie } = await signedIn(database.db, roleNames);
    watched = await browser.open({ url: dashboard.url, cookie });
  });
  afterAll(() => watched?.close());

  const press = (key: string) => watched.page.keyboard.press(key);
  const focusedRow = () =>
    watched.page.evaluate<number>(
      "[...document.querySelectorAll('main tbody tr')].findIndex((row) => row.contains(document.activeElement))",
    );

  test("j and k move through the rows of a list, and stop at its ends", async () => {
    await watched.go("/events");
    const rows: number[] = [];
    for (const key of ["j", "j", "j", "k", "k", "k"]) {
      await press(key);
      rows.push(await focusedRow());
    }
    expect(rows).toEqual([0, 1, 2, 1, 0, 0]);
    await press("Enter");
    await watched.page.waitForURL(/\/events\/\d+$/);
  });

  test("a slash leads to the search field, where letters are letters", async () => {
    await watched.go("/events");
    await press("/");
    const field = watched.page.locator("input:focus");
    await watched.page.keyboard.type("gj?");
    expect(await field.inputValue()).toBe("gj?");
    expect(await watched.page.locator("dialog").count()).toBe(0);
  });

  test("a time in a list is said as its distance by the server's clock, with the exact one in its title", async () => {
    await watched.go("/events");
    const times = await watched.page.evaluate<[string, string][]>(
      "Array.from(document.querySelectorAll('main time.ago'), (each) => [each.textContent, each.title])",
    );
    expect(times.length).toBeGreaterThan(20);
    for (const [text, title] of times) {
      expect(text).toMatch(/^(in )?\d+ (s|min|hours?|days?)( ago)?$/);
      expect(title).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
    }
  });

  test("g and the letter of a page lead there, alone and not with Ctrl", async () => {
    await watched.go("/events");
    await press("g");
    await press("h");
    await watched.page.waitForURL(`${dashboard.url}/`);
    await press("Control+g");
    await press("e");
    await press("g");
    await press("e");
    await watched.page.waitForURL(`${dashboard.url}/events`);
  });

  test("every page has a letter of its own, the same for each role", async () => {
    const keysFor = async (roles: readonly Role[]) => {
      const { cookie } = await signedIn(database.db, roles);
      const own = await browser.open({ url: dashboard.url, cookie });
      await own.go("/");
      const keys = await own.page.evaluate<string[]>(
        "Array.from(document.querySelectorAll('.side li a'), (link) => link.dataset.key + ' ' + link.textContent)",
      );
      await own.close();
      return keys;
    };
    const all = await keysFor(roleNames);
    expect(new Set(all.map((key) => key[0])).size).toBe(all.length);
    expect(all).toEqual(expect.arrayContaining(await keysFor(["viewer"])));
  });

  test("a question mark lists them in a dialog that holds the focus, and gives it back", async () => {
    await watched.go("/events");
    await press("j");
    await press("?");
    const dialog = watched.page.getByRole("dialog", { name: "Keys" });
    expect(await dialog.isVisible()).toBe(true);
    expect(await dialog.textContent()).toMatch(/g eEvents/);
    expect(await accessibilityFaults(watched.page, { asked: "all", onlyContent: false })).toEqual([]);
    await press("Escape");
    expect(await watched.page.locator("dialog").count()).toBe(0);
    expect(await focusedRow()).toBe(0);
    expect(watched.complaints()).toEqual([]);
  });

  test("can be turned off by those whom single letters hinder", async () => {
    await watched.go("/me");
    await watched.page.getByRole("button", { name: "Turn the keys off" }).click();
    await watched.go("/events");
    await press("?");
    await press("j");
    expect([await watched.page.locator("dialog").count(), await focusedRow()]).toEqual([0, -1]);
    await watched.go("/me");
    await watched.page.getByRole("button", { name: "Turn the keys on" }).click();
    await watched.go("/events");
    await press("j");
    expect(await focusedRow()).toBe(0);
  });
});

describe.skipIf(!chromiumAvailable)("an attacker's page", () => {
  const browser = useBrowser({ keepsPages: true });
  let evil: { url: string; serve(html: string): void; close(): void };

  beforeAll(async () => {
    let page = "";
    const server = createServer((_, answer) => {
      answer.setHeader("content-type", "text/html");
      answer.end(`<!doctype html><title>evil</title>${page}`);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    // Another name of this machine: for a browser, another site.
    const { port } = server.address() as AddressInfo;
    evil = {
      url: `http://localhost:${port}/`,
      serve: (html) => void (page = html),
      close: () => void (server.closeAllConnections(), server.close()),
    };
  });
  afterAll(() => evil?.close());

  async function victim() {
    const { cookie, email } = await signedIn(database.db, ["viewer"]);
    const watched = await browser.open({ url: dashboard.url, cookie });
    const acts = () => database.db("people.audit").where({ actor: email }).pluck("action");
    const isIn = async () => (await watched.go("/me")) === 200 && watched.page.url().endsWith("/me");
    return { ...watched, acts, isIn };
  }

  test("signs nobody out and changes nothing by a form that it sends itself", async () => {
    const { page, isIn, acts, close } = await victim();
    evil.serve(
      `<form method="post" action="${dashboard.url}/sign-out"></form><script>document.forms[0].submit()</script>`,
    );
    await page.goto(evil.url);
    await page.waitForURL(`${dashboard.url}/**`);
    expect(await page.content()).toMatch(/came from another site|Sign in/);
    expect([await isIn(), await acts()]).toEqual([true, []]);
    await close();
  });

  test("reads nothing and changes nothing by fetch", async () => {
    const { page, isIn, acts, close } = await victim();
    evil.serve("");
    await page.goto(evil.url);
    const tried = await page.evaluate<string[]>(
      `Promise.all([
        fetch("${dashboard.url}/me", { credentials: "include" }),
        fetch("${dashboard.url}/me", { credentials: "include", mode: "no-cors" }),
        fetch("${dashboard.url}/me/sessions/end-others", {
          method: "POST", credentials: "include", mode: "no-cors", body: new URLSearchParams(),
        }),
      ].map((answer) => answer.then((it) => it.text()).then((text) => "read " + text.length, () => "refused")))`,
    );
    expect(tried).not.toContainEqual(expect.stringMatching(/^read [1-9]/));
    expect([await isIn(), await acts()]).toEqual([true, []]);
    await close();
  });

  test("shows no page of the dashboard in a frame", async () => {
    const { page, close } = await victim();
    evil.serve(`<iframe src="${dashboard.url}/me"></iframe><object data="${dashboard.url}/me"></object>`);
    await page.goto(evil.url, { waitUntil: "load" });
    const shown = page.frames().map((frame) => frame.url());
    expect(shown).not.toContainEqual(expect.stringContaining(`${dashboard.url}/me`));
    await close();
  });

  test("runs no file of the dashboard, and reads none by opening its window", async () => {
    const { page, close } = await victim();
    evil.serve("<button>open</button>");
    await page.goto(evil.url);
    const read = await page.evaluate<string>(
      `(async () => {
        const opened = window.open("${dashboard.url}/me");
        await new Promise((resolve) => setTimeout(resolve, 500));
        try { return String(opened?.document?.title ?? opened?.closed); } catch { return "refused"; }
      })()`,
    );
    expect(read).not.toContain("Tallyhook");
    await close();
  });

  test("signs nobody in as somebody else by a link, without a press of a button", async () => {
    const watched = await browser.open({ url: dashboard.url });
    const token = await database.db.transaction(async (trx) => {
      const email = "mallory@example.com";
      const known = await findAccount(trx, email);
      const { id } = known ?? (await createAccount(trx, { email, roles: ["viewer"], passwordHash: null }));
      return createSignInLink(trx, id, dashboard.clock.now());
    });
    evil.serve(`<a href="${dashboard.url}/sign-in/link?token=${token}">win a prize</a>`);
    await watched.page.goto(evil.url);
    await watched.page.getByText("win a prize").click();
    await watched.page.waitForURL(`${dashboard.url}/**`);
    expect(await watched.page.getByRole("button", { name: "Sign in" }).isVisible()).toBe(true);
    expect(await watched.page.context().cookies(dashboard.url)).toEqual([]);
    await watched.page.getByRole("button", { name: "Sign in" }).click();
    await watched.page.waitForURL(`${dashboard.url}/`);
    await watched.close();
  });
});

describe.skipIf(!chromiumAvailable)("after a sign-out", () => {
  const browser = useBrowser({ keepsPages: true });

  test("the back button shows nothing that was seen before, and a copied cookie opens nothing", async () => {
    const { cookie, email } = await signedIn(database.db, ["viewer"]);
    const { page, go, close } = await browser.open({ url: dashboard.url, cookie });
    await go("/me");
    await go("/events");
    const copied = await page.context().cookies(dashboard.url);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/\/sign-in/);
    for (let n = 0; n < 2; n++) {
      await page.goBack();
      expect(await page.locator("h1").textContent()).toBe("Sign in");
      expect(await page.content()).not.toContain(email);
    }
    await page.context().addCookies(copied);
    await go("/me");
    expect(await page.locator("h1").textContent()).toBe("Sign in");
    await close();
  });
});
