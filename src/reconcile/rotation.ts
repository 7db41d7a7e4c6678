import type { Knex } from "knex";
import { mirrorTableOf } from "./mirror-tables.ts";
import type { Resource } from "../mirror/observation.ts";
import { dayMs } from "./settings.ts";
import { bound } from "./slice.ts";

/** The part of a resource's history that a night reads. */
export interface RotationPart {
  /** Null: from the first record on. */
  from: string | null;
  before: string;
  /** It reaches the window: the next night begins at the first record again. */
  closesCycle: boolean;
}

export interface RotationState {
  /** Up to where this cycle has read; null before its first night. */
  position: string | null;
  /** T0 of the run that ended the last cycle. */
  cycleStart: Date;
}

/**
 * How many of the rows that this cycle still has to read are due tonight: enough that every night that remains of
 * the cycle takes as many, and all in its last. A night that was missed is caught up by the next ones. Pure.
 */
export function rowsDue(
  { remainingRows, cycleStart, t0 }: { remainingRows: number; cycleStart: Date; t0: Date },
  nights: number,
): number {
  const nightsLeft = Math.max(1, nights - nightOf({ cycleStart, t0 }) + 1);
  return Math.ceil(remainingRows / nightsLeft);
}

/** From 1. A day may have 23 or 25 hours. */
const nightOf = ({ cycleStart, t0 }: { cycleStart: Date; t0: Date }): number =>
  Math.max(1, Math.round((t0.getTime() - cycleStart.getTime()) / dayMs));

/** Where the rotation of a resource stands: after its last part that counts. Null when nothing was ever walked whole. */
export async function rotationState(db: Knex, resource: Resource): Promise<RotationState | null> {
  const { rows } = await db.raw<{ rows: { position: Date | null; cycle_start: Date | null }[] }>(
    `with parts as (
       select r.t0, c.created_before, c.closes_cycle
       from reconcile.coverage c join reconcile.runs r on r.id = c.run
       where c.resource = ? and c.step in ('rotation', 'all')
         and (c.run, c.slice) in (select s.run, s.slice from reports.read_slices() s)
     ), closed as (select max(t0) as at from parts where closes_cycle)
     select closed.at as cycle_start,
            (select max(created_before) from parts where t0 > closed.at and not closes_cycle) as position
     from closed`,
    [resource],
  );
  const [row] = rows;
  if (row === undefined || row.cycle_start === null) return null;
  return {
    position: row.position === null ? null : bound(row.position),
    cycleStart: row.cycle_start,
  };
}

/**
 * Tonight's part, cut by the mirror's own rows: from where the rotation stands, as many rows as are due, at most to
 * the window, which is read every night anyway.
 */
export async function rotationPart(
  db: Knex,
  { resource, t0, windowFrom }: { resource: Resource; t0: Date; windowFrom: string },
  { position, cycleStart }: RotationState,
  nights: number,
): Promise<RotationPart | null> {
  const whole = { from: null, before: windowFrom, closesCycle: true };
  // Their list knows no dates: a part of it would cost all that is newer, so they are read whole, once a cycle.
  if (resource === "subscription") return nightOf({ cycleStart, t0 }) < nights ? null : whole;
  const from = position !== null && position < windowFrom ? position : null;
  const history = () =>
    db(`mirror.${mirrorTableOf[resource]}`)
      .where("created_at", "<", windowFrom)
      .modify((query) => {
        if (from !== null) void query.where("created_at", ">=", from);
      });
  const [counted] = await history().count<{ n: string }[]>("* as n");
  const due = rowsDue({ remainingRows: Number(counted?.n ?? 0), cycleStart, t0 }, nights);
  const next = await history()
    .orderBy("created_at")
    .offset(due)
    .first<{ created_at: Date } | undefined>("created_at");
  const before = next === undefined ? windowFrom : bound(next.created_at);
  const isStuck = from !== null && before <= from;
  if (next === undefined || isStuck) return { from, before: windowFrom, closesCycle: true };
  return { from, before, closesCycle: false };
}
