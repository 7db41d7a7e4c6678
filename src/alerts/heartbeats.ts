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

/** Says that somebody ends as it should: nobody waits for it. */
export async function leave(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").where({ name }).delete();
}
