import type { Knex } from "knex";
import { tableExists } from "../../platform/postgres/schema-objects.ts";

/** A nightly backup is overdue after this long, whatever its duration. */
export const lateBackupHours = 30;

/** State of the backups that the command `backup` made, by the database's clock. */
export interface Backups {
  /** The moment of the last verified backup; null: there is none yet. */
  takenAt: Date | null;
  /** When the first backup began. */
  triedSince: Date;
  now: Date;
}

/** Null: no backup was ever begun here, so none is missed. One statement. */
export async function readBackups(db: Knex): Promise<Backups | null> {
  const { rows } = await db.raw<{ rows: Backups[] }>(
    `select taken_at as "takenAt", tried_since as "triedSince", clock_timestamp() as now from mirror.backups`,
  );
  return rows[0] ?? null;
}

/** How long there has been no verified backup. */
export const unsavedMs = ({ takenAt, triedSince, now }: Backups): number =>
  now.getTime() - (takenAt ?? triedSince).getTime();

/**
 * Notes that a backup was begun or, with its moment, that it is verified. Does nothing in a database that still waits
 * for `migrate`, since a backup precedes it. Idempotent.
 */
export async function noteBackup(db: Knex, takenAt: string | null): Promise<void> {
  if (!(await tableExists(db, "mirror.backups"))) return;
  await db.raw(
    `insert into mirror.backups as b (taken_at) values (?::timestamptz)
     on conflict (one) do update set taken_at = greatest(b.taken_at, excluded.taken_at)`,
    [takenAt],
  );
}
