import type pg from "pg";

/** Bytes stored for one event. */
export interface DiskUse {
  /** Tables and indexes. */
  inbox: number;
  mirror: number;
  /** All other schemas; on PostgreSQL, the queue is among them. */
  rest: number;
  /** Written into the log, which is kept only until it is archived or replicated. */
  wal: number;
}

/** Starts to measure; the returned function gives the bytes stored since then for each of so many events. */
export async function meterDisk(client: pg.Client): Promise<(events: number) => Promise<DiskUse>> {
  const before = await readDisk(client);
  return async (events) => {
    const after = await readDisk(client);
    const perEvent = (of: keyof DiskUse): number => (after[of] - before[of]) / events;
    return {
      inbox: perEvent("inbox"),
      mirror: perEvent("mirror"),
      rest: perEvent("rest"),
      wal: perEvent("wal"),
    };
  };
}

async function readDisk(client: pg.Client): Promise<DiskUse> {
  const { rows } = await client.query<DiskUse>(
    `select coalesce(sum(bytes) filter (where room = 'inbox'), 0)::float8 as inbox,
            coalesce(sum(bytes) filter (where room = 'mirror'), 0)::float8 as mirror,
            coalesce(sum(bytes) filter (where room not in ('inbox', 'mirror')), 0)::float8 as rest,
            (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as wal
     from (select n.nspname as room, pg_total_relation_size(c.oid) as bytes
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
           where c.relkind = 'r' and n.nspname !~ '^(pg_|information_schema$)') tables`,
  );
  return rows[0]!;
}
