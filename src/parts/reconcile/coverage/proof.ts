import type { Knex } from "knex";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import { type Gap, gapsOf } from "./coverage.ts";
import { boundText, slicedResources } from "./slice.ts";

/** A part of a list in which a run proved every object. Times in service time, fixed form; null: open on that side. */
export interface ProvedPart {
  resource: Resource;
  run: number;
  from: string | null;
  before: string | null;
  /** When it was read. */
  readAt: Date;
  /** It still counts: otherwise the rotation would have read it again. */
  isFresh: boolean;
}

/**
 * Parts that overlap a range of creation times, the newest read first, also those that count no more `at` a time of
 * this deployment's clock. One statement.
 */
export async function provedParts(
  db: Knex,
  { from, before, at }: { from: Date; before: Date; at: Date },
): Promise<ProvedPart[]> {
  const { rows } = await db.raw<{ rows: PartRow[] }>(
    `select run, resource, read_at, lower(bounds) as created_from, upper(bounds) as created_before,
            fresh_until > :at as is_fresh
     from reports.read_slices()
     -- The first condition saves cutting the holes out of what does not matter.
     where walked && tstzrange(:from, :before) and bounds && tstzrange(:from, :before)
     order by read_at desc, run desc, slice`,
    { from, before, at },
  );
  return rows.map(toPart);
}

/** All parts that count `at` a time of this deployment's clock. One statement. */
async function freshParts(db: Knex, at: Date): Promise<ProvedPart[]> {
  const { rows } = await db.raw<{ rows: PartRow[] }>(
    `select run, resource, read_at, lower(bounds) as created_from, upper(bounds) as created_before, true as is_fresh
     from reports.fresh_slices(null, ?) where not isempty(bounds)`,
    [at],
  );
  return rows.map(toPart);
}

const toPart = (row: PartRow): ProvedPart => ({
  resource: row.resource,
  run: Number(row.run),
  from: row.created_from === null ? null : boundText(row.created_from),
  before: row.created_before === null ? null : boundText(row.created_before),
  readAt: row.read_at,
  isFresh: row.is_fresh,
});

interface PartRow {
  run: string;
  resource: Resource;
  read_at: Date;
  created_from: Date | null;
  created_before: Date | null;
  is_fresh: boolean;
}

/** How far one list is proved, and its gaps. */
export interface ListProof {
  resource: Resource;
  /** Everything created before was read and counts; null: not even the first record. */
  provedUntil: Date | null;
  /** The end of the last proved part; later than `provedUntil` where there are gaps. */
  lastProved: Date | null;
  gaps: Gap[];
  /** It was proved once, by reads that are too old to count. */
  isOutdated: boolean;
  /** How far reads that count end after `now`, which only disagreeing clocks explain; 0 otherwise. */
  aheadMs: number;
}

/**
 * How far each list is proved. Covers objects created up to `now`, service time; `at` decides which reads count, by
 * this deployment's clock. Three statements.
 */
export async function listProofs(db: Knex, { now, at }: { now: Date; at: Date }): Promise<ListProof[]> {
  const [parts, read, changesUntil] = await Promise.all([freshParts(db, at), everRead(db), changesReadUntil(db)]);
  return slicedResources.map((resource) =>
    proofOf(resource, parts, { wasRead: read.has(resource), now, changesUntil }),
  );
}

/** The time until which changes to older objects were read, as reports use it; null where they never were. */
async function changesReadUntil(db: Knex): Promise<Date | null> {
  const { rows } = await db.raw<{ rows: { until: Date | null }[] }>("select reports.changes_read_until() as until");
  return rows[0]?.until ?? null;
}

async function everRead(db: Knex): Promise<ReadonlySet<string>> {
  const { rows } = await db.raw<{ rows: { resource: string }[] }>(
    "select distinct s.resource from reports.read_slices() s where not isempty(s.bounds)",
  );
  return new Set(rows.map(({ resource }) => resource));
}

/**
 * Uses the parts that count; `wasRead`: such parts existed once. Where changes to older objects were read until a time
 * (`changesUntil`), nothing is proved after it, even where later objects were read.
 */
export function proofOf(
  resource: Resource,
  parts: readonly Pick<ProvedPart, "resource" | "from" | "before">[],
  { wasRead, now, changesUntil }: { wasRead: boolean; now: Date; changesUntil?: Date | null },
): ListProof {
  const fresh = parts.filter((part) => part.resource === resource);
  const limit = boundText(changesUntil != null && changesUntil < now ? changesUntil : now);
  const ends = fresh.map(({ before }) => before);
  const last = ends.reduce<string | null>((latest, before) => {
    const end = before === null || before > limit ? limit : before;
    return latest === null || end > latest ? end : latest;
  }, null);
  const gaps = last === null ? [] : gapsOf(fresh, resource, { from: null, until: last });
  const until = gaps.length === 0 ? last : (gaps[0]?.from ?? null);
  return {
    resource,
    provedUntil: until === null ? null : new Date(until),
    lastProved: last === null ? null : new Date(last),
    gaps,
    isOutdated: fresh.length === 0 && wasRead,
    aheadMs: Math.max(0, ...ends.map((end) => (end === null ? 0 : Date.parse(end) - now.getTime()))),
  };
}

/** A night and half a day: a proof that ends earlier shows that a run was left out. */
const usualLagMs = 36 * 3_600_000;

/** How much too old a list's last proof is, given a run every night; 0 where it is recent, or there was none. */
export function lateByMs({ lastProved }: Pick<ListProof, "lastProved">, now: Date): number {
  const lagMs = lastProved === null ? 0 : now.getTime() - lastProved.getTime();
  return lagMs > usualLagMs ? lagMs : 0;
}

/** The unproved parts of a list, from the first record to `now`. */
export interface Unproved {
  gaps: readonly Gap[];
  /**
   * Objects created since then will be proved by the next run, which is no fault; null where no run is awaited. Not a
   * gap.
   */
  awaitedFrom: Date | null;
}

/** Judge a gap before it is cut for a page: a part of it does not show its age. */
export function unprovedOf(proof: ListProof, now: Date): Unproved {
  const { resource, lastProved, gaps } = proof;
  if (lastProved !== null && lastProved >= now) return { gaps, awaitedFrom: null };
  if (lastProved !== null && lateByMs(proof, now) === 0) return { gaps, awaitedFrom: lastProved };
  const from = lastProved === null ? null : boundText(lastProved);
  return { gaps: [...gaps, { resource, from, before: boundText(now) }], awaitedFrom: null };
}

export interface ProvedDay {
  /**
   * `part`: only some hours of it; `outdated`: read, but too old to count; `so_far`: proved as far as possible now, and
   * the next run will prove the rest; `ahead`: the day has not begun.
   */
  state: "proved" | "part" | "outdated" | "unproved" | "so_far" | "ahead";
  /** The newest reads that together prove it, the newest first. */
  by: readonly { run: number; readAt: Date }[];
}

/**
 * The proof of a list between two moments, which bound a local day. `parts` with the newest read first; time after
 * `now` (service time) cannot be proved. `awaitedFrom` from `unprovedOf`.
 */
export function dayOf(
  parts: readonly ProvedPart[],
  {
    resource,
    from,
    before,
    now,
    awaitedFrom,
  }: { resource: Resource; from: Date; before: Date; now: Date; awaitedFrom: Date | null },
): ProvedDay {
  if (from >= now) return { state: "ahead", by: [] };
  const range = { from: boundText(from), until: boundText(before < now ? before : now) };
  const own = parts.filter(
    (part) =>
      part.resource === resource &&
      (part.from === null || part.from < range.until) &&
      (part.before === null || part.before > range.from),
  );
  const fresh = own.filter(({ isFresh }) => isFresh);
  const { gaps, by } = needed(fresh, resource, range);
  if (gaps.length === 0) return { state: before > now ? "so_far" : "proved", by };
  const awaited = awaitedFrom === null ? null : boundText(awaitedFrom);
  if (awaited !== null && gaps.every((gap) => gap.from !== null && gap.from >= awaited)) {
    return { state: "so_far", by };
  }
  if (fresh.length > 0) return { state: "part", by };
  const former = needed(own, resource, range);
  return { state: former.gaps.length === 0 ? "outdated" : "unproved", by: former.by };
}

/**
 * The newest parts until they leave no gap, each run once. A gap may be a single moment, so its length proves nothing.
 */
function needed(
  parts: readonly ProvedPart[],
  resource: Resource,
  range: { from: string; until: string },
): { gaps: readonly Gap[]; by: ProvedDay["by"] } {
  const used: ProvedPart[] = [];
  let left = gapsOf(used, resource, range);
  for (const part of parts) {
    const after = gapsOf([...used, part], resource, range);
    if (JSON.stringify(after) === JSON.stringify(left)) continue;
    used.push(part);
    left = after;
    if (left.length === 0) break;
  }
  const runs = new Map(used.map(({ run, readAt }) => [run, { run, readAt }]));
  return { gaps: left, by: [...runs.values()] };
}
