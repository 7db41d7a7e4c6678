import type { Knex } from "knex";
import { tableExists } from "../../platform/postgres/schema-objects.ts";

/** A backup each night is late by then, whatever it takes. */
export const lateBackupHours = 30;

/** What is known of backups that the command `backup` made, by the database's clock. */
export interface Backups {
  /** The moment of the last one that was verified; null: none has been yet. */
  takenAt: Date | null;
  /** When the first was begun. */
  triedSince: Date;
  now: Date;
}

/** Null: nobody has ever begun a backup here, so none is missed. One statement. */
export async function readBackups(db: Knex): Promise<Backups | null> {
  const { rows } = await db.raw<{ rows: Backups[] }>(
    `select taken_at as "takenAt", tried_since as "triedSince", clock_timestamp() as now from mirror.backups`,
  );
  return rows[0] ?? null;
}

/** For how long there has been no verified backup. */
export const unsavedMs = ({ takenAt, triedSince, now }: Backups): number =>
  now.getTime() - (takenAt ?? triedSince).getTime();

/**
 * Notes that a backup was begun or, with its moment, that it is verified. A database that waits for `migrate`, which a
 * backup precedes, has no place for it. Idempotent.
 */
export async function noteBackup(db: Knex, takenAt: string | null): Promise<void> {
  if (!(await tableExists(db, "mirror.backups"))) return;
  await db.raw(
    `insert into mirror.backups as b (taken_at) values (?::timestamptz)
     on conflict (one) do update set taken_at = greatest(b.taken_at, excluded.taken_at)`,
    [takenAt],
  );
}
