import type { Knex } from "knex";
import { errorCode } from "../../../platform/postgres/errors.ts";
import type { Blocker } from "../../../platform/postgres/lock-waits.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { mirrorResources } from "../resources.ts";
import type { GroupState } from "../snapshot.ts";

/** Rows that another transaction keeps locked, with the blocker; null where it is unknown. */
type LockedRows = ReadonlyMap<string, Blocker | null>;

/**
 * Finds which of these states belong to rows that another transaction keeps locked, and the blocker. Waits for no lock,
 * and holds the free rows for the length of one statement for each table. It sees neither rows that are being inserted
 * nor, where several sessions share a lock, the sessions.
 */
export async function findLocked(
  db: Knex,
  states: readonly GroupState[],
): Promise<ReadonlyMap<GroupState, Blocker | null>> {
  const found = new Map<GroupState, Blocker | null>();
  for (const { table, groups } of mirrorResources) {
    const own = states.filter(({ group }) => Object.hasOwn(groups, group));
    if (own.length === 0) continue;
    const rows = await lockedRows(db, table, [...new Set(own.map(({ id }) => id))]);
    for (const state of own) {
      const holder = rows.get(state.id);
      if (holder !== undefined) found.set(state, holder);
    }
  }
  return found;
}

/** The locked rows of one table; every id where the table itself is locked. */
async function lockedRows(db: Knex, table: string, ids: readonly string[]): Promise<LockedRows> {
  try {
    return await inTransaction(db, async (trx) => {
      await trx.raw("set local lock_timeout = '20ms'");
      const { rows } = await trx.raw<{ rows: (Blocker & { id: string })[] }>(
        `with wanted as materialized (
           select id, xmax from mirror.${table} where id = any(:ids::text[])
         ), free as materialized (
           select id from mirror.${table} where id = any(:ids::text[]) for update skip locked
         )
         select w.id, case when l.transactionid is not null then coalesce(l.pid, 0) end as pid, a.state,
                coalesce(nullif(a.application_name, ''), a.backend_type) as application,
                (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::float8 as "transactionMs",
                (extract(epoch from clock_timestamp() - a.query_start) * 1000)::float8 as "queryMs"
         from wanted w
         left join pg_locks l on l.locktype = 'transactionid' and l.granted and l.transactionid = w.xmax
         left join pg_stat_activity a on a.pid = l.pid
         where not exists (select from free where free.id = w.id)`,
        { ids: sqlArray(ids) },
      );
      return new Map(rows.map(({ id, ...holder }) => [id, holder.pid === null ? null : holder]));
    });
  } catch (error) {
    if (errorCode(error) !== "55P03") throw error;
    return new Map(ids.map((id) => [id, null]));
  }
}
