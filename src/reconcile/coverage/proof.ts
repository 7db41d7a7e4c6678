import type { Knex } from "knex";
import type { Resource } from "../../mirror/snapshot.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
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
  /** It still counts: the rotation would have read it again by now otherwise. */
  isFresh: boolean;
}

/**
 * Parts that overlap a range of creation times, the newest read first, also those that count no more. `now` is service
 * time. One statement.
 */
export async function provedParts(
  db: Knex,
  { from, before, now }: { from: Date; before: Date; now: Date },
): Promise<ProvedPart[]> {
  const { rows } = await db.raw<{ rows: PartRow[] }>(
    `select run, resource, read_at, lower(bounds) as created_from, upper(bounds) as created_before,
            fresh_until > :now as is_fresh
     from reports.read_slices()
     -- The first condition saves cutting the holes out of what does not matter.
     where walked && tstzrange(:from, :before) and bounds && tstzrange(:from, :before)
     order by read_at desc, run desc, slice`,
    { from, before, now },
  );
  return rows.map(toPart);
}

/** All parts that count at `now`, service time. One statement. */
async function freshParts(db: Knex, now: Date): Promise<ProvedPart[]> {
  const { rows } = await db.raw<{ rows: PartRow[] }>(
    `select run, resource, read_at, lower(bounds) as created_from, upper(bounds) as created_before, true as is_fresh
     from reports.fresh_slices(null, ?) where not isempty(bounds)`,
    [now],
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

/** What is known of one list: how far it is proved, and what is not. */
export interface ListProof {
  resource: Resource;
  /** Everything created before was read and counts; null: not even the first record. */
  provedUntil: Date | null;
  /** Where what is proved ends last; later than `provedUntil` where there are gaps. */
  lastProved: Date | null;
  /** Before `lastProved`. */
  gaps: Gap[];
  /** It was proved once, by reads that are too old to count. */
  isOutdated: boolean;
  /** By how much reads that count end after `now`, which only clocks that disagree explain; 0 where none does. */
  aheadMs: number;
}

/** How far each list is proved at `now`, service time. Two statements. */
export async function listProofs(db: Knex, now: Date): Promise<ListProof[]> {
  const [parts, read] = await Promise.all([freshParts(db, now), everRead(db)]);
  return slicedResources.map((resource) =>
    proofOf(resource, parts, { wasRead: read.has(resource), now }),
  );
}

async function everRead(db: Knex): Promise<ReadonlySet<string>> {
  const { rows } = await db.raw<{ rows: { resource: string }[] }>(
    `select r.resource from unnest(?::text[]) as r(resource)
     where exists (select from reconcile.coverage c where c.resource = r.resource and c.state = 'complete' and c.is_closed)`,
    [sqlArray(slicedResources)],
  );
  return new Set(rows.map(({ resource }) => resource));
}

/** Of the parts that count; `wasRead`: there were such parts once. Pure. */
export function proofOf(
  resource: Resource,
  parts: readonly Pick<ProvedPart, "resource" | "from" | "before">[],
  { wasRead, now }: { wasRead: boolean; now: Date },
): ListProof {
  const fresh = parts.filter((part) => part.resource === resource);
  const [limit, ends] = [boundText(now), fresh.map(({ before }) => before)];
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
    aheadMs: Math.max(
      0,
      ...ends.map((end) => (end === null ? 0 : Date.parse(end) - now.getTime())),
    ),
  };
}

/** What is known of one list on one day. */
export interface ProvedDay {
  /**
   * `part`: only some hours of it; `outdated`: read, and too old to count; `ahead`: of a day that goes on or has not
   * begun, what was created until now is proved as far as can be.
   */
  state: "proved" | "part" | "outdated" | "unproved" | "ahead";
  /** The newest reads that together prove it, the newest first. */
  by: readonly { run: number; readAt: Date }[];
}

/**
 * How a list is proved between two moments, a day as people count it. `parts` with the newest read first; what `now`
 * (service time) has not reached cannot be proved. Pure.
 */
export function dayOf(
  parts: readonly ProvedPart[],
  { resource, from, before, now }: { resource: Resource; from: Date; before: Date; now: Date },
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
  const used = needed(fresh, resource, range);
  if (used.isWhole) return { state: "proved", by: used.by };
  if (fresh.length > 0) return { state: before > now ? "ahead" : "part", by: used.by };
  const former = needed(own, resource, range);
  if (former.isWhole) return { state: "outdated", by: former.by };
  return { state: before > now ? "ahead" : "unproved", by: former.by };
}

/** The newest parts until they leave no gap, each run once. A gap may be of one moment, so its length says nothing. */
function needed(
  parts: readonly ProvedPart[],
  resource: Resource,
  range: { from: string; until: string },
): { isWhole: boolean; by: ProvedDay["by"] } {
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
  return { isWhole: left.length === 0, by: [...runs.values()] };
}
