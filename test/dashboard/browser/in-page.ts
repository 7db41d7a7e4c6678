import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

/** Of what each page is asked from inside. It is no TypeScript: it runs in the browser, as it stands there. */
export const inPageFile = fileURLToPath(new URL("./in-page.js", import.meta.url));

/** Where the focus went. */
export interface Stop {
  /** Its place among all that can be reached; -1: none of it. */
  place: number;
  name: string;
  isSeen: boolean;
}

/** Calls a function of in-page.js. */
export const inPage = (
  page: Page,
  name: "sidewaysFaults" | "axeFaults" | "noteFocus" | "hostileFaults",
  given: object = {},
): Promise<string[]> => page.evaluate(`inPage.${name}(${JSON.stringify(given)})`);

/** Where the focus went since `noteFocus`. */
export const focusStops = (page: Page): Promise<Stop[]> => page.evaluate("stops");
