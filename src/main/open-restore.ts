import type { Knex } from "knex";

// A database that was filled from a backup looks whole, and would tell people again what they were told. So it is marked
// before the first row, and unmarked in the transaction that notes what is known. A schema, since the restore wants a
// database without a table.
const mark = "tallyhook_open_restore";

/** Marks a database that is about to be filled. Idempotent. */
export async function beginRestore(db: Knex): Promise<void> {
  await db.raw(`create schema if not exists ${mark}`);
}

/** Unmarks it. Idempotent. */
export async function endRestore(db: Knex): Promise<void> {
  await db.raw(`drop schema if exists ${mark}`);
}

/** Whether a restore was begun and what it has to note was not noted. One statement. */
export async function isRestoreOpen(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ open: boolean }] }>(
    "select to_regnamespace(?) is not null as open",
    [mark],
  );
  return rows[0].open;
}

/** What to do about it. */
export const openRestore =
  "A restore of this database ended before it had noted what people were told: they would be told again. Run " +
  '"node src/bin/tallyhook.js restored --taken-at TIME --ran-until TIME", or make the database again and restore again ' +
  "(docs/backup.md).";
