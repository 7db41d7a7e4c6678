import { existsSync } from "node:fs";

const places = [
  process.env["CHROMIUM"] ?? "",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome-stable",
  "/usr/bin/google-chrome",
  "/snap/bin/chromium",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The browser of this machine; null where there is none. */
export const chromiumPath: string | null = places.find((place) => existsSync(place)) ?? null;

const shell = "/usr/bin/chromium-headless-shell";

/**
 * The browser of most tests: the same engine without windows, at 40 % of the CPU. It keeps no page for the back button.
 * Where it is not installed, or CHROMIUM names a browser, it is the browser itself.
 */
export const headlessShellPath: string | null =
  process.env["CHROMIUM"] === undefined && existsSync(shell) ? shell : chromiumPath;

const firefoxes = ["/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** Firefox as the machine has it; null where there is none: then its stories are left out, and Chromium's remain. */
export const firefoxPath: string | null = firefoxes.find((place) => existsSync(place)) ?? null;

/**
 * For `describe.skipIf(!chromiumAvailable)`. On CI it is true without a browser as well: there the suites have to fail,
 * not to vanish, since no other test covers a browser's handling of the pages.
 */
export const chromiumAvailable = chromiumPath !== null || process.env["CI"] === "true";
