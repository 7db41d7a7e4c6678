import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { inPage } from "./in-page.ts";

const axe = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules whose answer colours can change, and those whose answer the width can; the others read the document alone. */
const rulesOfColours = ["color-contrast", "link-in-text-block"];
const rulesOfLayout = [...rulesOfColours, "scrollable-region-focusable", "target-size"];

const rules = { all: null, layout: rulesOfLayout, colours: rulesOfColours } as const;

export interface AskedRules {
  asked: keyof typeof rules;
  /** The content without the frame around it, and of rows that differ by their words alone the first. */
  onlyContent: boolean;
}

/**
 * What axe-core finds on the page as it is shown now. It comes by way of the debugger, which the content policy does
 * not concern: the policy stays as it is, and what it refuses is still reported.
 */
export async function accessibilityFaults(page: Page, { asked, onlyContent }: AskedRules): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(await axe);
  const values = rules[asked];
  const options: RunOptions = {
    resultTypes: ["violations"],
    // It would read the stylesheets once more.
    preload: false,
    ...(values === null ? {} : { runOnly: { type: "rule", values: [...values] } }),
  };
  return inPage(page, "axeFaults", { options, onlyContent });
}
