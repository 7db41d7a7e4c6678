import type { Page } from "playwright-core";
import { focusStops, inPage } from "./in-page.ts";

const tab = { type: "rawKeyDown", key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 } as const;

/**
 * Presses Tab from the top of the page until it begins again, and tells what a person with a keyboard alone would miss:
 * something that is never reached, out of order, or not shown to be reached, and a place that Tab does not leave.
 */
export async function keyboardFaults(page: Page): Promise<string[]> {
  const names = await inPage(page, "noteFocus");
  const keys = await page.context().newCDPSession(page);
  // A field for a time has several places inside.
  const inside = 6 * names.filter((name) => /type="(date|time|month|week)/.test(name)).length;
  // Sent without waiting for each: a list has hundreds of places.
  await Promise.all(Array.from({ length: names.length + 2 + inside }, () => keys.send("Input.dispatchKeyEvent", tab)));
  await keys.detach();
  const stops = await focusStops(page);
  const faults = names.flatMap((name, n) => {
    const stop = stops[n];
    if (stop?.place !== n) return [`Tab ${n + 1} reaches ${stop?.name ?? "nothing"}, not ${name}`];
    return stop.isSeen ? [] : [`nothing shows that Tab reached ${name}`];
  });
  // Past the last it leaves the page, and begins again.
  const next = stops[names.length];
  if (next !== undefined && next.place !== 0) faults.push(`Tab does not leave ${next.name}`);
  return faults.slice(0, 3);
}
