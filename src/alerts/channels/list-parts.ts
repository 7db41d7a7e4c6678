import type { ChannelSettings } from "../channel-settings.ts";
import type { AlertItem } from "../message.ts";
import { maxItems } from "./channel.ts";
import { itemText } from "./slack.ts";

/** What a message takes in items. Beyond it a channel would refuse the message, or cut it. */
interface ListLimits {
  /** In characters, as the channel writes an item. */
  size: number;
  items: number;
  sizeOf(item: AlertItem): number;
}

const asJson = (item: AlertItem): number => JSON.stringify(item).length;

const limitsOf: Readonly<Record<ChannelSettings["kind"], ListLimits>> = {
  // Two neighbouring sections hold more than 2,900 characters: that makes 18 of the 50 blocks of a message.
  slack: { size: 25_000, items: maxItems, sizeOf: (item) => itemText(item).length },
  email: { size: 150_000, items: maxItems, sizeOf: asJson },
  // An event has 512 KiB.
  pagerduty: { size: 100_000, items: maxItems, sizeOf: asJson },
  webhook: { size: 200_000, items: maxItems, sizeOf: asJson },
  // Containers' logs cut a line at 16 KiB.
  stdout: { size: 15_000, items: maxItems, sizeOf: asJson },
};

/**
 * Cuts a list into as many as a channel needs, so that it shows every item; at least one item each. A channel that the
 * settings no longer have gets one list. Pure.
 */
export function listParts<T>(
  kind: ChannelSettings["kind"] | undefined,
  all: readonly T[],
  itemOf: (one: T) => AlertItem,
): T[][] {
  if (kind === undefined) return [[...all]];
  const { size, items, sizeOf } = limitsOf[kind];
  const parts: T[][] = [];
  let room = 0;
  for (const one of all) {
    const needed = sizeOf(itemOf(one));
    const last = parts.at(-1);
    if (last === undefined || needed > room || last.length >= items) {
      parts.push([one]);
      room = size - needed;
    } else {
      last.push(one);
      room -= needed;
    }
  }
  return parts;
}
