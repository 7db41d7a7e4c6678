import { chromiumAvailable, chromiumPath } from "./chromium.ts";

/** Once a run, before any test: reports that the suites in the browser are left out, or on CI that they may not be. */
export function setup(): void {
  if (chromiumPath !== null) return;
  if (chromiumAvailable) {
    throw new Error("Chromium is not installed, and on CI the tests of the dashboard in it must run");
  }
  console.warn(
    "Chromium is not installed: the tests of the dashboard in a browser are skipped. " +
      "Debian: apt-get install chromium chromium-headless-shell. Elsewhere name it by CHROMIUM=/path/of/it.",
  );
}
