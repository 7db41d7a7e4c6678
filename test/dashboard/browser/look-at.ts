import { createHash } from "node:crypto";
import { accessibilityFaults } from "./accessibility.ts";
import { inPage } from "./in-page.ts";
import type { WatchedPage } from "./use-browser.ts";

const looks = [
  { scheme: "light", width: 1_280 },
  { scheme: "dark", width: 1_280 },
  { scheme: "dark", width: 375 },
  { scheme: "light", width: 375 },
] as const;

/**
 * Opens a page and looks at it in light and dark, wide and narrow: what is wrong with it, each with where it is seen. A
 * page whose content is in `known` already is not measured for access once more, since the same was measured before.
 */
export async function lookAt(
  { page, go, complaints }: WatchedPage,
  address: string,
  known: Set<string>,
): Promise<{ status: number; faults: string[] }> {
  const status = await go(address);
  const content = await page.locator("main").innerHTML();
  const hash = createHash("sha256").update(content).digest("hex");
  const isNew = !known.has(hash);
  known.add(hash);
  const faults: string[] = [];
  for (const [n, { scheme, width }] of looks.entries()) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    const found = [
      ...(await inPage(page, "sidewaysFaults")),
      ...(isNew ? await accessibilityFaults(page, { onlyLayout: n > 0 }) : []),
    ];
    faults.push(...found.map((fault) => `${address}, ${scheme}, ${width} px: ${fault}`));
  }
  faults.push(...complaints().map((complaint) => `${address}: ${complaint}`));
  return { status, faults };
}
