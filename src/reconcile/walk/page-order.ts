import { storable } from "../../platform/postgres/values.ts";
import { TallyhookError } from "../../platform/errors.ts";
import type { ServicePage } from "../../client/service-client.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import type { ShownRange } from "../recheck/rechecks.ts";
import type { Checkpoint, LedgerSlice } from "../coverage/ledger.ts";

/** The list is not in the order that was asked for, or not in the default one: where a walk stands means nothing. */
export class UnorderedPage extends TallyhookError {}

/** The times between which everything is shown, and what was. */
export type Shown = Pick<ShownRange, "after" | "before" | "shownIds">;

/** What of a slice a page spans. */
export interface PageSpan {
  checkpoint: Checkpoint;
  /** The times between which the page shows everything; null where it shows nothing new to hold against. */
  range: Shown | null;
  /** The slice ends with this page. */
  isEnd: boolean;
}

type Walked = Pick<
  LedgerSlice,
  "resource" | "direction" | "createdFrom" | "createdBefore" | "path"
>;

/**
 * Checks that a page goes on in the order of creation, and tells between which times it shows everything. Objects of
 * the same time may go on on the next page: the page's own last time is left to that one. Pure; throws
 * `UnorderedPage`.
 */
export function orderOf(slice: Walked, checkpoint: Checkpoint, page: ServicePage): PageSpan {
  const isNewestFirst = slice.direction === "newest_first";
  // What the database cannot hold must not end the walk: the object itself is found to be unreadable.
  const shown = page.items.map((item) => ({ id: storable(item.id), at: createdAt(slice, item) }));
  let last = checkpoint.boundary;
  for (const { at } of shown) {
    if (last !== null && (isNewestFirst ? at > last : at < last)) throw unordered(slice);
    last = at;
  }
  const isCircle = shown.length > 0 && shown.every(({ id }) => checkpoint.boundaryIds.includes(id));
  if (isCircle) {
    throw new UnorderedPage(`GET ${slice.path}: a page shows what the one before has shown.`);
  }
  // Subscriptions cannot be cut by dates there, so they are cut here.
  const isBeyond = last !== null && slice.createdFrom !== null && last < slice.createdFrom;
  const isEnd = !page.hasMore || (isNewestFirst && isBeyond);
  const atBoundary = shown.filter(({ at }) => at === last).map(({ id }) => id);
  const carried = last === checkpoint.boundary ? checkpoint.boundaryIds : [];
  const start = checkpoint.boundary;
  return {
    checkpoint: {
      cursor: page.nextCursor === null ? null : storable(page.nextCursor),
      boundary: last,
      boundaryIds: [...carried, ...atBoundary],
    },
    range: {
      ...spanOf(slice, { start, end: isEnd ? null : last }),
      shownIds: [...checkpoint.boundaryIds, ...shown.map(({ id }) => id)],
    },
    isEnd,
  };
}

/** What pages that follow one another show together. Pure. */
export function shownTogether(
  { direction }: Pick<Walked, "direction">,
  earlier: Shown | null,
  later: Shown | null,
): Shown | null {
  if (earlier === null || later === null) return earlier ?? later;
  const [newer, older] = direction === "newest_first" ? [earlier, later] : [later, earlier];
  const shownIds = [...earlier.shownIds, ...later.shownIds];
  return { after: older.after, before: newer.before, shownIds };
}

/** From where the last page ended (included: it left its last time to this one) to where this one ends. */
function spanOf(
  { direction, createdFrom, createdBefore }: Walked,
  { start, end }: { start: string | null; end: string | null },
): Pick<ShownRange, "after" | "before"> {
  const included = (createdAt: string | null) =>
    createdAt === null ? null : { createdAt, isIncluded: true };
  const excluded = (createdAt: string | null) =>
    createdAt === null ? null : { createdAt, isIncluded: false };
  return direction === "newest_first"
    ? {
        before: included(start) ?? excluded(createdBefore),
        after: excluded(end) ?? included(createdFrom),
      }
    : {
        after: included(start) ?? included(createdFrom),
        before: excluded(end) ?? excluded(createdBefore),
      };
}

function createdAt({ path }: Walked, item: Readonly<Record<string, unknown>>): string {
  const at = typeof item["created_at"] === "string" ? canonicalTimestamp(item["created_at"]) : null;
  if (at === null) {
    throw new UnorderedPage(
      `GET ${path}: an object has no created_at that can be read, so nothing tells where the walk stands.`,
    );
  }
  return at;
}

const unordered = ({ path, direction }: Walked): UnorderedPage =>
  new UnorderedPage(
    `GET ${path}: the list is not in the order of creation (${direction === "newest_first" ? "newest" : "oldest"} first), ` +
      "so a walk of it proves nothing.",
  );
