import type { Knex } from "knex";
import type { ClientBase } from "pg";

/**
 * Makes a commit on this connection mean that it outlives a crash, whatever server, database or role are set to.
 * Only `off` is changed: what waits for standbys as well is stronger.
 */
export async function makeCommitsDurable(client: ClientBase): Promise<void> {
  await client.query(
    `select set_config('synchronous_commit', 'on', false)
      where current_setting('synchronous_commit') = 'off'`,
  );
}

/** The settings that decide what a crash takes, as a new connection has them. */
export interface DurabilitySettings {
  fsync: string;
  synchronousCommit: string;
}

export async function readDurabilitySettings(db: Knex): Promise<DurabilitySettings> {
  const { rows } = await db.raw<{ rows: [DurabilitySettings] }>(
    `select current_setting('fsync') as "fsync",
            current_setting('synchronous_commit') as "synchronousCommit"`,
  );
  return rows[0];
}

/** What a crash would take, in words for a person, and what to do about it. Null: nothing. */
export function durabilityProblem({
  fsync,
  synchronousCommit,
}: DurabilitySettings): { says: string; remedy: string } | null {
  if (fsync === "off") {
    return {
      says: "fsync is off: a crash of the machine can destroy the database",
      remedy: "set fsync = on in postgresql.conf",
    };
  }
  if (synchronousCommit === "off") {
    return {
      says: "synchronous_commit is off: a crash takes the last commits with it, but for acknowledged events",
      remedy: "set synchronous_commit = on for the server, the database and the role",
    };
  }
  return null;
}
