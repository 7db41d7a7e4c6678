import type { Knex } from "knex";

/** The name under which the scheduler is known: a task of the queue beats for it. */
export const schedulerBeat = "scheduler";

/** Says that somebody lives. One statement. */
export async function beat(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats")
    .insert({ name, beat_at: db.fn.now() })
    .onConflict("name")
    .merge(["beat_at"]);
}

export interface Heartbeats {
  /** Of each worker that did not end as it should: for how long nothing was heard of it. */
  workerAgesSeconds: number[];
  /** Null: it has never run a task. */
  schedulerAgeSeconds: number | null;
}

/** Who lives. One statement. */
export async function readHeartbeats(db: Knex): Promise<Heartbeats> {
  const { rows } = await db.raw<{ rows: { name: string; age: number }[] }>(
    "select name, extract(epoch from now() - beat_at)::float8 as age from alerts.heartbeats order by beat_at desc",
  );
  return {
    workerAgesSeconds: rows.filter(({ name }) => name.startsWith("worker:")).map(({ age }) => age),
    schedulerAgeSeconds: rows.find(({ name }) => name === schedulerBeat)?.age ?? null,
  };
}

/** Says that somebody ends as it should: nobody waits for it. */
export async function leave(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").where({ name }).delete();
}
