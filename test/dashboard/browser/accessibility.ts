import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { inPage } from "./in-page.ts";

const axe = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules whose answer colours and width can change; the others read the document alone. */
const rulesOfLayout = [
  "color-contrast",
  "link-in-text-block",
  "scrollable-region-focusable",
  "target-size",
];

/**
 * What axe-core finds on the page as it is shown now. It comes by way of the debugger, which the content policy does
 * not concern: the policy stays as it is, and what it refuses is still reported.
 */
export async function accessibilityFaults(
  page: Page,
  { onlyLayout }: { onlyLayout: boolean },
): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(await axe);
  const options: RunOptions = {
    resultTypes: ["violations"],
    // It would read the stylesheets once more.
    preload: false,
    ...(onlyLayout ? { runOnly: { type: "rule", values: rulesOfLayout } } : {}),
  };
  return inPage(page, "axeFaults", options);
}
