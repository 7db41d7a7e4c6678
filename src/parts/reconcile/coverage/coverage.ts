import type { Knex } from "knex";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import { boundText, slicedResources } from "./slice.ts";

/** A slice that was read to its end and showed every object within its bounds. Null: open on that side. */
export interface ReadInterval {
  resource: Resource;
  from: string | null;
  before: string | null;
}

/** A part of a resource's history without a proof. */
export interface Gap {
  resource: Resource;
  from: string | null;
  before: string | null;
}

export interface Coverage {
  /** Whether everything from `from` to `until` was read. */
  complete: boolean;
  gaps: Gap[];
}

/** The gaps that the intervals leave between `from` and `until`. Null as a start means the first record. */
export function gapsOf(
  intervals: readonly ReadInterval[],
  resource: Resource,
  { from, until }: { from: string | null; until: string },
): Gap[] {
  const gaps: Gap[] = [];
  let covered = from;
  const own = intervals.filter((interval) => interval.resource === resource);
  for (const interval of own.sort((a, b) => compareStart(a.from, b.from))) {
    const isBeyond = interval.from !== null && interval.from >= until;
    if (isBeyond) break;
    if (compareStart(interval.from, covered) > 0) {
      gaps.push({ resource, from: covered, before: interval.from });
    }
    if (interval.before === null) return gaps;
    if (compareStart(interval.before, covered) > 0) covered = interval.before;
    if (covered !== null && covered >= until) return gaps;
  }
  return [...gaps, { resource, from: covered, before: until }];
}

/** The time up to which everything from the first record on was read; null where there is none. */
export function contiguousUntil(intervals: readonly ReadInterval[], resource: Resource, until: string): string | null {
  const [gap] = gapsOf(intervals, resource, { from: null, until });
  return gap === undefined ? until : gap.from;
}

/** Null sorts before every time. */
function compareStart(a: string | null, b: string | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

/** Computes whether everything was read: every resource, without a gap. */
export function computeCoverage(
  intervals: readonly ReadInterval[],
  range: { from: string | null; until: string },
): Coverage {
  const gaps = slicedResources.flatMap((resource) => gapsOf(intervals, resource, range));
  return { complete: gaps.length === 0, gaps };
}

interface WhichReads {
  /** Only reads that still count for this many milliseconds, by the database's clock; left out: of any age. */
  countForMs?: number;
  /** Only reads of this run. */
  run?: number;
}

/** The intervals that were read and are proved, as `reports.read_slices` defines it. One statement. */
export async function readIntervals(db: Knex, which: WhichReads = {}): Promise<ReadInterval[]> {
  return intervalsOf(db, "bounds", which);
}

async function intervalsOf(
  db: Knex,
  range: "bounds" | "walked",
  { countForMs, run }: WhichReads,
): Promise<ReadInterval[]> {
  const { rows } = await db.raw<{ rows: IntervalRow[] }>(
    `select distinct resource, lower(${range}) as created_from, upper(${range}) as created_before
     from reports.read_slices()
     where not isempty(${range}) and (cast(:run as bigint) is null or run = :run)
       and (cast(:countForMs as float8) is null or fresh_until > now() + :countForMs * interval '1 millisecond')`,
    { countForMs: countForMs ?? null, run: run ?? null } as unknown as Record<string, string>,
  );
  return rows.map((row) => ({
    resource: row.resource,
    from: row.created_from === null ? null : boundText(row.created_from),
    before: row.created_before === null ? null : boundText(row.created_before),
  }));
}

interface IntervalRow {
  resource: Resource;
  created_from: Date | null;
  created_before: Date | null;
}

/**
 * The parts of each resource's history, up to a time, whose reads stop counting within so many milliseconds. An
 * unreadable object is no such gap. One statement.
 */
export async function staleGaps(
  db: Knex,
  { until, countForMs }: { until: string; countForMs: number },
): Promise<Gap[]> {
  const intervals = await intervalsOf(db, "walked", { countForMs });
  return computeCoverage(intervals, { from: null, until }).gaps;
}

/**
 * The time until which all resources were read without a gap, however long ago: stale parts are read again. A single
 * unreadable object does not end it, or every nightly run would start again from there. Null when a resource was never
 * read from the first record on.
 */
export async function coveredUntil(db: Knex, t0: Date): Promise<Date | null> {
  const intervals = await intervalsOf(db, "walked", {});
  const ends = slicedResources.map((resource) => contiguousUntil(intervals, resource, boundText(t0)));
  if (ends.includes(null)) return null;
  return new Date(Math.min(...ends.map((end) => Date.parse(end ?? ""))));
}
