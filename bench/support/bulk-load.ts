import type { ClientBase } from "pg";

/**
 * Empties tables and fills them within one transaction, without WAL (under `wal_level = minimal`), and builds their
 * indexes afterwards: several times as fast as row by row. The pages of indexes on ids are left as full as those of an
 * index that grew in random order. Partitions of the tables are included. Leaves the tables as they were if it fails.
 * For a superuser, without other connections to the database.
 */
export async function bulkLoad(
  client: ClientBase,
  tables: readonly string[],
  load: () => Promise<void>,
): Promise<void> {
  const list = tables.join(", ");
  const indexes = await indexesOf(client, tables);
  const random = indexes.filter(({ isOrdered }) => !isOrdered);
  await client.query("begin");
  try {
    // The history refuses to be emptied.
    await client.query("set local session_replication_role = replica");
    await client.query(`truncate ${list} restart identity`);
    await client.query("set local session_replication_role = origin");
    for (const { name } of random) {
      await client.query(`alter index ${name} set (fillfactor = ${randomFill})`);
    }
    // Rows pass these indexes by, until they are built.
    await client.query("update pg_index set indisready = false, indisvalid = false where indexrelid = any($1::oid[])", [
      indexes.map(({ oid }) => oid),
    ]);
    await load();
    for (const { name } of indexes) await client.query(`reindex index ${name}`);
    for (const { name } of random) await client.query(`alter index ${name} reset (fillfactor)`);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
  await client.query(`vacuum (analyze, freeze) ${list}`);
}

/** Percent: the average fill of pages that split in halves. */
const randomFill = 68;

interface Index {
  oid: number;
  name: string;
  /** The first column grows with time, so its pages are left full. */
  isOrdered: boolean;
}

async function indexesOf(client: ClientBase, tables: readonly string[]): Promise<Index[]> {
  const { rows } = await client.query<Index>(
    `with recursive tree as (
       select unnest($1::regclass[])::oid as table_oid
       union all
       select inhrelid from tree join pg_inherits on inhparent = table_oid
     )
     select i.indexrelid::oid as oid, i.indexrelid::regclass::text as name,
            am.amname <> 'btree' or a.atttypid in ('int8'::regtype, 'timestamptz'::regtype) as "isOrdered"
     from tree join pg_index i on i.indrelid = table_oid
       join pg_class c on c.oid = i.indexrelid and c.relkind = 'i' join pg_am am on am.oid = c.relam
       join pg_attribute a on a.attrelid = i.indexrelid and a.attnum = 1`,
    [tables],
  );
  return rows;
}
