import type { Knex } from "knex";

/** The name of the scheduler's heartbeat, which a task of the queue sends. */
export const schedulerBeat = "scheduler";

/** Records a heartbeat. One statement. */
export async function recordHeartbeat(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").insert({ name, beat_at: db.fn.now() }).onConflict("name").merge(["beat_at"]);
}

export interface Heartbeat {
  name: string;
  beatAt: Date;
  /** Dated by the database's clock. */
  ageSeconds: number;
}

export const isWorker = ({ name }: Heartbeat): boolean => name.startsWith("worker:");

/** All heartbeats, the latest first: of each worker that did not shut down properly, and the scheduler's. One statement. */
export async function readHeartbeats(db: Knex): Promise<Heartbeat[]> {
  const { rows } = await db.raw<{ rows: Heartbeat[] }>(
    `select name, beat_at as "beatAt", extract(epoch from now() - beat_at)::float8 as "ageSeconds"
     from alerts.heartbeats order by beat_at desc, name`,
  );
  return rows;
}

/** Removes a heartbeat at a proper shutdown, so that it is not missed. One statement. */
export async function removeHeartbeat(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").where({ name }).delete();
}
