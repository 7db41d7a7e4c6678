import type { Knex } from "knex";

/** A restore of the database from a backup. */
export interface Restore {
  /** The moment of the backup. */
  takenAt: Date;
  /** When the lost system last worked: it had reported everything up to then. */
  ranUntil: Date;
  /** `ranUntil` by the service's clock. */
  serviceRanUntil: Date;
  by: string;
}

/** Notes a restore. From then on what happened before it is history: neither announced nor news of the feed. */
export async function recordRestore(
  trx: Knex.Transaction,
  { takenAt, ranUntil, serviceRanUntil, by }: Restore,
): Promise<void> {
  await trx("mirror.restores").insert({
    taken_at: takenAt,
    ran_until: ranUntil,
    service_ran_until: serviceRanUntil,
    restored_by: by,
  });
}

/**
 * SQL: up to when what happened is known from the system that this database was restored in place of, by the service's
 * clock; null where it never was restored.
 */
export const knownUntilSql = "(select max(service_ran_until) from mirror.restores)";

/** `ranUntil` of the last restore. One statement. */
export async function knownUntil(db: Knex): Promise<Date | null> {
  const { rows } = await db.raw<{ rows: [{ until: Date | null }] }>(`select ${knownUntilSql} as until`);
  return rows[0].until;
}

/** Whether a restored database still lacks changes that nothing has yet read from the service. One statement. */
export async function isCatchingUp(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ lacks: boolean }] }>(
    "select exists (select from mirror.restores where caught_up_at is null) as lacks",
  );
  return rows[0].lacks;
}

/** Notes that a run which read everything is complete; of restores before it began. One statement; idempotent. */
export async function noteCaughtUp(db: Knex, runStartedAt: Date): Promise<void> {
  await db("mirror.restores")
    .whereNull("caught_up_at")
    .where("restored_at", "<", runStartedAt)
    .update({ caught_up_at: db.fn.now() });
}
