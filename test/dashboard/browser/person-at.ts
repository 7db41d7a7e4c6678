import { readFile } from "node:fs/promises";
import type { Locator, Page } from "playwright-core";

/** What a person does on a page: it ends when the page that comes of it is there. */
export interface Person {
  page: Page;
  main: Locator;
  /** A page of those at the side. */
  opens(name: string): Promise<void>;
  /** A link in the content, to a page with this title. */
  follows(link: string | RegExp, title: string | RegExp): Promise<void>;
  /** With the field at the head of every page. */
  searches(text: string, title: string | RegExp): Promise<void>;
  chooses(field: string, option: string): Promise<void>;
  writes(field: string, text: string): Promise<void>;
  /** A button; without a title the page has the one that it had. */
  presses(button: string, title?: string): Promise<void>;
  reloads(): Promise<void>;
  /** The text of the content as it is shown. */
  reads(): Promise<string>;
  /** What stands in a column of a board. */
  column(name: string): Promise<string>;
  downloads(link: string): Promise<Buffer>;
}

/** Whoever sits before a page of the dashboard. */
export function personAt(page: Page): Person {
  const main = page.locator("main");
  const titleNow = () => page.locator("h1").innerText();
  const leaves = async (act: () => Promise<void>, title: string | RegExp) => {
    // The same title may stand on the page that is left.
    await Promise.all([page.waitForEvent("framenavigated"), act()]);
    await page.waitForLoadState("load");
    const arrived = spaced(await titleNow());
    if (typeof title === "string" ? arrived !== title : !title.test(arrived)) {
      throw new Error(`${arrived} in place of ${title}: ${spaced(await main.innerText())}`);
    }
  };
  const link = (name: string | RegExp) => main.getByRole("link", { name, exact: true }).first();
  return {
    page,
    main,
    async opens(name) {
      const side = page.getByRole("navigation", { name: "Pages" });
      await leaves(() => side.getByRole("link", { name, exact: true }).click(), name);
    },
    follows: (name, title) => leaves(() => link(name).click(), title),
    async searches(text, title) {
      const field = page.getByRole("searchbox", { name: "Search" });
      await field.fill(text);
      await leaves(() => field.press("Enter"), title);
    },
    async chooses(field, option) {
      await main.getByLabel(field, { exact: true }).selectOption({ label: option });
    },
    writes: (field, text) => main.getByLabel(field, { exact: true }).fill(text),
    async presses(button, title) {
      const to = title ?? (await titleNow());
      await leaves(() => main.getByRole("button", { name: button, exact: true }).click(), to);
    },
    async reloads() {
      await page.reload({ waitUntil: "load" });
    },
    reads: async () => spaced(await main.innerText()),
    column: async (name) => spaced(await main.getByRole("region", { name: new RegExp(`^${name}`) }).innerText()),
    async downloads(name) {
      const [download] = await Promise.all([page.waitForEvent("download"), link(name).click()]);
      return readFile(await download.path());
    },
  };
}

/** With one space wherever the page shows any. Pure. */
export const spaced = (text: string): string => text.replaceAll(/\s+/g, " ").trim();
