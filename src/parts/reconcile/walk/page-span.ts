import { storable } from "../../../platform/postgres/values.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import type { ServicePage } from "../../../core/client/service-client.ts";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import type { ShownRange } from "../recheck/rechecks.ts";
import type { Checkpoint, LedgerSlice } from "../coverage/ledger.ts";

/** The page is out of order, without creation times, or the same as before, so a walk cannot continue from it. */
export class UnusablePage extends TallyhookError {}

/** A range of creation times in which every object was shown, and the ids of those objects. */
export type ShownObjects = Pick<ShownRange, "after" | "before" | "shownIds">;

/** The part of a slice that a page covers. */
export interface PageSpan {
  checkpoint: Checkpoint;
  /** The creation times within which the page shows everything; null where it adds none to compare with. */
  range: ShownObjects | null;
  /** The slice ends with this page. */
  isEnd: boolean;
}

type Walked = Pick<LedgerSlice, "resource" | "direction" | "createdFrom" | "createdBefore" | "path">;

/**
 * Checks that a page continues in order of creation, and finds the range of creation times within which it shows
 * everything. More objects with its last creation time may follow, so that time belongs to the next page's range. Pure;
 * throws `UnusablePage`.
 */
export function spanOfPage(slice: Walked, checkpoint: Checkpoint, page: ServicePage): PageSpan {
  const isNewestFirst = slice.direction === "newest_first";
  // A value that the database cannot hold must not end the walk: that object is recorded as unreadable.
  const shown = page.items.map((item) => ({ id: storable(item.id), at: createdAt(slice, item) }));
  let last = checkpoint.boundary;
  for (const { at } of shown) {
    if (last !== null && (isNewestFirst ? at > last : at < last)) throw unordered(slice);
    last = at;
  }
  const isCircle = shown.length > 0 && shown.every(({ id }) => checkpoint.boundaryIds.includes(id));
  if (isCircle) {
    throw new UnusablePage(
      `GET ${slice.path}: the list repeats itself (a page shows only objects of the page before), so it has no end.`,
    );
  }
  // The service cannot filter subscriptions by date, so the slice is cut here.
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

/** Joins the ranges of consecutive pages. */
export function joinedRanges(
  { direction }: Pick<Walked, "direction">,
  earlier: ShownObjects | null,
  later: ShownObjects | null,
): ShownObjects | null {
  if (earlier === null || later === null) return earlier ?? later;
  const [newer, older] = direction === "newest_first" ? [earlier, later] : [later, earlier];
  const shownIds = [...earlier.shownIds, ...later.shownIds];
  return { after: older.after, before: newer.before, shownIds };
}

/**
 * The span from the end of the previous page (inclusive: its last time was left to this page) to the end of this one.
 */
function spanOf(
  { direction, createdFrom, createdBefore }: Walked,
  { start, end }: { start: string | null; end: string | null },
): Pick<ShownRange, "after" | "before"> {
  const included = (createdAt: string | null) => (createdAt === null ? null : { createdAt, isIncluded: true });
  const excluded = (createdAt: string | null) => (createdAt === null ? null : { createdAt, isIncluded: false });
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
    throw new UnusablePage(`GET ${path}: an object has no readable created_at, so its place in the list is unknown.`);
  }
  return at;
}

const unordered = ({ path, direction }: Walked): UnusablePage =>
  new UnusablePage(
    `GET ${path}: the list is not in the order of creation (${direction === "newest_first" ? "newest" : "oldest"} first), ` +
      "so reading it proves nothing.",
  );
