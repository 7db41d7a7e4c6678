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
 * page whose content is in `known` was looked at before, and so was a refusal: their words differ, their form does not.
 */
export async function lookAt(
  { page, go, complaints }: WatchedPage,
  address: string,
  known: Set<string>,
): Promise<{ status: number; faults: string[] }> {
  const status = await go(address);
  const content = status === 403 ? "refused" : await page.locator("main").innerHTML();
  const hash = createHash("sha256").update(content).digest("hex");
  const isNew = !known.has(hash);
  known.add(hash);
  const faults: string[] = [];
  for (const [n, { scheme, width }] of (isNew ? looks : []).entries()) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    const found = [
      ...(await inPage(page, "sidewaysFaults")),
      ...(await accessibilityFaults(page, { onlyLayout: n > 0 })),
    ];
    faults.push(...found.map((fault) => `${address}, ${scheme}, ${width} px: ${fault}`));
  }
  faults.push(...complaints().map((complaint) => `${address}: ${complaint}`));
  return { status, faults };
}
