import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";

/** A scheduled task as all workers of a database know it. Times are the database's. */
export interface TaskState {
  name: string;
  knownSince: Date;
  starts: number;
  startedAt: Date | null;
  /** Whether a worker runs it, or was killed less than a turn's length ago. */
  isHeld: boolean;
  now: Date;
}

/**
 * Reads the states of these tasks; a new one is written down. A turn that ends later than one that began now would (the
 * database's clock was set back) has no holder.
 */
export async function readTasks(db: Knex, names: readonly string[], turnMs: number): Promise<TaskState[]> {
  const read = async (): Promise<TaskState[]> => {
    const { rows } = await db.raw<{ rows: (Omit<TaskState, "starts"> & { starts: string })[] }>(
      `select name, known_since as "knownSince", starts, started_at as "startedAt", clock_timestamp() as now,
              ${isHeld} as "isHeld"
       from inbox.tasks where name = any(:names::text[])`,
      { names: sqlArray(names), turnMs },
    );
    return rows.map(({ starts, ...row }) => ({ ...row, starts: Number(starts) }));
  };
  const known = await read();
  if (known.length === names.length) return known;
  await db.raw("insert into inbox.tasks (name) select unnest(?::text[]) on conflict (name) do nothing", [
    sqlArray(names),
  ]);
  return read();
}

const isHeld = `coalesce(held_until > clock_timestamp()
  and held_until <= clock_timestamp() + make_interval(secs => :turnMs::float8 / 1000), false)`;

const turnEnds = "clock_timestamp() + make_interval(secs => :turnMs::float8 / 1000)";

export interface Turn {
  name: string;
  /** Unique to this turn. */
  holder: string;
}

/** Begins a task, unless its number of starts has changed, or its turn is held. One statement. */
export async function takeTurn(
  db: Knex,
  { name, holder }: Turn,
  { starts, turnMs }: { starts: number; turnMs: number },
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.tasks
     set starts = starts + 1, started_at = clock_timestamp(), holder = :holder, held_until = ${turnEnds}
     where name = :name and starts = :starts and not ${isHeld}`,
    { name, holder, starts, turnMs },
  );
  return rowCount === 1;
}

/** Keeps a turn for its whole length from now on. False when another worker has it. One statement. */
export async function keepTurn(db: Knex, { name, holder }: Turn, turnMs: number): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.tasks set held_until = ${turnEnds} where name = :name and holder = :holder`,
    { name, holder, turnMs },
  );
  return rowCount === 1;
}

/** Gives a turn back, unless another worker has it. One statement. */
export async function endTurn(db: Knex, { name, holder }: Turn): Promise<void> {
  await db.raw("update inbox.tasks set holder = null, held_until = null where name = :name and holder = :holder", {
    name,
    holder,
  });
}
