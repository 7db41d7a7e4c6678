import { setTimeout as sleep } from "node:timers/promises";
import type { PageGroup, Place } from "./page-group.ts";
import type { PageDeps, Visitor } from "./route.ts";
import type { Tone } from "./elements/values.ts";

/** How many of a page's matters are open. */
export interface OpenCount {
  /** Null: more than can be counted. */
  n: number | null;
  tone: Tone;
}

export type OpenCounts = ReadonlyMap<Place, OpenCount>;

export interface CountReader {
  /** The last known counts that the visitor may see. Never fails, and waits only where counts may be outdated. */
  counts(visitor: Visitor | null): Promise<OpenCounts>;
  /** A change was made here: the next page waits for new counts. */
  expire(): void;
  close(): Promise<void>;
}

/** Older counts are read again, beside the page. */
const freshMs = 10_000;
/** A page waits so long for counts: for the first ones of this process, and for those after a change. */
const patienceMs = { first: 500, later: 100 };

/**
 * What the navigation shows beside the names, from the cards of home. The groups are read one after the other, so that
 * the pages keep the other connections.
 */
export function createOpenCounts(deps: PageDeps, groups: readonly PageGroup[]): CountReader {
  let known: { counts: OpenCounts; atMs: number } | null = null;
  let reading: Promise<void> | null = null;
  let isOutdated = true;
  let isClosed = false;

  async function read(): Promise<void> {
    const counts = new Map<Place, OpenCount>();
    const atMs = deps.clock.now().getTime();
    isOutdated = false;
    for (const { place, summary } of groups) {
      // Without a database each would take until its time limit.
      if (isClosed) return;
      if (place === null || summary === undefined) continue;
      try {
        const { count, tone } = await summary.read(deps);
        if (count !== undefined && count !== 0) counts.set(place, { n: count, tone });
      } catch (err) {
        deps.log.debug({ err, page: place.path }, "what is open could not be counted");
      }
    }
    known = { counts, atMs };
  }

  const isFresh = (): boolean => {
    const ageMs = known === null ? Infinity : deps.clock.now().getTime() - known.atMs;
    return !isOutdated && ageMs >= 0 && ageMs < freshMs;
  };

  return {
    async counts(visitor) {
      if (visitor === null) return new Map();
      const mustWait = isOutdated;
      if (!isFresh()) reading ??= read().finally(() => (reading = null));
      const patience = known === null ? patienceMs.first : patienceMs.later;
      if (mustWait) await Promise.race([reading, sleep(patience, undefined, { ref: false })]);
      const seen = groups.flatMap(({ place, summary }) => {
        const count = place === null ? undefined : known?.counts.get(place);
        const maySee = summary !== undefined && visitor.permissions.has(summary.access);
        return place !== null && count !== undefined && maySee ? [[place, count] as const] : [];
      });
      return new Map(seen);
    },
    expire: () => (isOutdated = true),
    async close() {
      isClosed = true;
      await reading;
    },
  };
}
