import { createHash } from "node:crypto";
import { accessibilityFaults } from "./accessibility.ts";
import { inPage } from "./in-page.ts";
import type { WatchedPage } from "./use-browser.ts";

/** Either way round, so that a page is first looked at as the one before it was left. */
const looks = [
  { scheme: "light", width: 1_280 },
  { scheme: "dark", width: 1_280 },
  { scheme: "dark", width: 375 },
  { scheme: "light", width: 375 },
] as const;

/** What sizes can change is asked once a width. */
const asked = ["all", "colours", "layout", "colours"] as const;

export interface Look {
  status: number;
  /** Whether there was something to look at that was not in `known`: only then does the browser show the page. */
  isNew: boolean;
  faults: string[];
}

/**
 * Opens a page and looks at it in light and dark, wide and narrow: what is wrong with it, each with where it is seen. A
 * page whose content and frame are in `known` was looked at before, and so was a refusal: their words differ, their form
 * does not. A frame is looked at once in each look, however many pages it is around.
 */
export async function lookAt(
  { page, go, read, complaints }: WatchedPage,
  address: string,
  known: Set<string>,
): Promise<Look> {
  const { status, html } = await read(address);
  const { content, frame } = partsOf(html);
  const isNew = (part: string): boolean => {
    const hash = createHash("sha256").update(part).digest("hex");
    const before = known.size;
    return known.add(hash).size > before;
  };
  const [hasNewFrame, hasNewContent] = [isNew(frame), isNew(status === 403 ? "refused" : content)];
  if (!hasNewFrame && !hasNewContent) return { status, isNew: false, faults: [] };
  await go(address);
  const faults: string[] = [];
  const isNarrow = page.viewportSize()?.width === 375;
  for (const [n, { scheme, width }] of (isNarrow ? looks.toReversed() : looks).entries()) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    const found = [
      ...(await inPage(page, "sidewaysFaults")),
      ...(await accessibilityFaults(page, {
        asked: asked[n] ?? "all",
        onlyContent: n > 0 && !hasNewFrame,
      })),
    ];
    faults.push(...found.map((fault) => `${address}, ${scheme}, ${width} px: ${fault}`));
  }
  faults.push(...complaints().map((complaint) => `${address}: ${complaint}`));
  return { status, isNew: true, faults };
}

/** What a page says, and what is at its side on every page of the person: which page it is, is no part of it. Pure. */
function partsOf(html: string): { content: string; frame: string } {
  const [, frame = "", content = html] = /<body[^>]*>(.*)(<main.*)$/s.exec(html) ?? [];
  return { content, frame: frame.replace('aria-current="page"', "").replaceAll(/\s+/g, " ") };
}
