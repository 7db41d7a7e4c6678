import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { mirrorResources } from "../../../mirror/resources.ts";
import { namedGroups } from "../../../mirror/resources/resource.ts";
import type { TableSize } from "./lock-times.ts";

interface SampleOptions {
  /** The most rows of a table, as a rule: what belongs to a chosen object comes whole. */
  rows: number;
  signal: AbortSignal;
}

interface Sample {
  /** By name with schema. */
  sizes: ReadonlyMap<string, TableSize>;
  /** Closed months of which everything was copied: ids of `reports.closes`. */
  closes: readonly string[];
  /** What could not be copied, a sentence each. */
  problems: string[];
}

/**
 * Copies rows of the source's tables into tables of the same names: of small ones all; of the others what belongs to a
 * number of objects (the latest, and some from anywhere), the latest closed months, and else the latest rows. Rows that a
 * foreign key leaves without their owner are taken out again. The source is one transaction that reads only, so that all
 * rows are of one moment.
 */
export async function copySample(
  source: Knex.Transaction,
  target: Knex,
  { rows: most, signal }: SampleOptions,
): Promise<Sample> {
  const sizes = new Map<string, TableSize>();
  const problems: string[] = [];
  const chosen = await chooseObjects(source, most);
  const closes = await chooseCloses(source, most * 10);
  const tables = await tablesOf(target);
  const there = new Map((await tablesOf(source)).map((each) => [each.name, each]));
  await target.transaction(async (trx) => {
    // No triggers, and foreign keys are looked after below.
    await trx.raw("set local session_replication_role = replica");
    for (const table of tables) {
      signal.throwIfAborted();
      const missing = table.columns.filter(
        (column) => there.get(table.name)?.columns.includes(column) !== true,
      );
      // Version 0.1 kept its notes in other tables.
      if (table.name.startsWith("public.") && !there.has(table.name)) continue;
      if (missing.length > 0) {
        const what = there.has(table.name) ? `the column ${missing[0]}` : "the table";
        problems.push(`The database lacks ${what} of ${table.name}, which its migrations make.`);
        continue;
      }
      const real = await countRows(source, table.name, most);
      const owners = await ownersIn(trx, table);
      const where =
        real <= most
          ? null
          : (belonging(table.name, chosen, closes) ?? owners ?? latest(table, most));
      const rows = where ?? { sql: "", bindings: [] };
      // Its migration may have filled it with rows of reference, which somebody may have changed since.
      await trx.raw(`delete from ${table.name}`);
      await copyRows(source, trx, table, rows, signal);
      sizes.set(table.name, { real, copied: 0 });
    }
    await removeOrphans(trx);
  });
  await target.raw("analyze");
  for (const [name, size] of sizes) {
    const { rows } = await target.raw<{ rows: { n: string }[] }>(
      `select count(*) as n from ${name}`,
    );
    size.copied = Number(rows[0]?.n ?? 0);
    size.real = Math.max(size.real, size.copied);
  }
  await advanceIdentities(target);
  return { sizes, closes, problems };
}

interface Table {
  /** With its schema, quoted where it needs to be. */
  name: string;
  columns: string[];
  /** Columns of its primary key. */
  key: string[];
  /** A foreign key of one column. */
  owner: { column: string; table: string; key: string } | null;
}

/** All tables but those of the migrations and of the queue, owners first. Partitions are in their table. */
async function tablesOf(db: Knex): Promise<Table[]> {
  const { rows } = await db.raw<{ rows: Table[] }>(
    `select format('%I.%I', n.nspname, c.relname) as name,
            (select array_agg(quote_ident(attname) order by attnum) from pg_attribute
             where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns,
            coalesce((select array_agg(quote_ident(a.attname) order by array_position(i.indkey::int2[], a.attnum))
             from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
             where i.indrelid = c.oid and i.indisprimary), '{}') as key,
            (select json_build_object('column', quote_ident(a.attname), 'table', f.confrelid::regclass::text,
                                      'key', quote_ident(b.attname))
             from pg_constraint f
               join pg_attribute a on a.attrelid = c.oid and a.attnum = f.conkey[1]
               join pg_attribute b on b.attrelid = f.confrelid and b.attnum = f.confkey[1]
             where f.conrelid = c.oid and f.contype = 'f' and cardinality(f.conkey) = 1 and f.confrelid <> c.oid
             order by f.oid limit 1) as owner
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and not c.relispartition
       and n.nspname !~ '^(pg_|information_schema$|bullmq$)'
       and (n.nspname <> 'public' or c.relname ~ '^tallyhook_schema_')
     order by 1`,
  );
  const placed: Table[] = [];
  const isPlaced = (name: string): boolean => placed.some((each) => each.name === name);
  let left = rows;
  while (left.length > 0) {
    const free = left.filter(({ owner }) => owner === null || isPlaced(owner.table));
    placed.push(...(free.length > 0 ? free : left));
    left = left.filter(({ name }) => !isPlaced(name));
  }
  return placed;
}

/** Exactly up to the limit; beyond it the server's own estimate, where it has one. */
async function countRows(db: Knex, table: string, limit: number): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: string; estimate: number | null }[] }>(
    `select (select count(*) from (select from ${table} limit ?) t) as n,
            (select case when min(c.reltuples) >= 0 then sum(c.reltuples)::float8 end
             from pg_partition_tree(?::regclass) p join pg_class c on c.oid = p.relid
             where p.isleaf or c.relkind = 'r') as estimate`,
    [limit + 1, table],
  );
  const counted = Number(rows[0]?.n ?? 0);
  if (counted <= limit) return counted;
  const estimate = rows[0]?.estimate ?? null;
  if (estimate !== null) return Math.max(counted, Math.round(estimate));
  const all = await db.raw<{ rows: { n: string }[] }>(`select count(*) as n from ${table}`);
  return Number(all.rows[0]?.n ?? counted);
}

interface Where {
  /** What follows the table's name. */
  sql: string;
  bindings: readonly (string | number)[];
}

/** Ids of the objects whose rows are copied. */
interface Chosen {
  orders: string;
  transactions: string;
  subscriptions: string;
  customers: string;
  all: string;
  /** Of their events. */
  seqs: string;
}

/** Half of the orders are the latest, the others come from anywhere in the table; all else belongs to them. */
async function chooseObjects(db: Knex, rows: number): Promise<Chosen> {
  const total = await countRows(db, "mirror.orders", rows);
  // What belongs to an order are some rows more in each table.
  const count = total <= rows ? total : Math.ceil(rows / 8);
  // Pages with many times the rows, so that those taken come from many pages.
  const percent = Math.min(100, (100 * 16 * count) / Math.max(1, total));
  const ids = async (sql: string, bindings: readonly (string | number)[]): Promise<string[]> => {
    const { rows: found } = await db.raw<{ rows: { id: string }[] }>(sql, bindings as string[]);
    return found.map(({ id }) => id);
  };
  const orders = new Set([
    ...(await ids(
      "select id from mirror.orders where created_at is not null order by created_at desc limit ?",
      [count],
    )),
    ...(await ids(
      `select id from mirror.orders tablesample system (${percent}) repeatable (1) order by md5(id) limit ?`,
      [count],
    )),
  ]);
  const ofOrders = [sqlArray([...orders])];
  const related = async (column: string) =>
    ids(
      `select distinct ${column} as id from mirror.orders where id = any(?::text[]) and ${column} is not null`,
      ofOrders,
    );
  const transactions = await ids(
    "select id from mirror.transactions where order_id = any(?::text[])",
    ofOrders,
  );
  const subscriptions = await related("subscription_id");
  const customers = await related("customer_id");
  const all = sqlArray([...orders, ...transactions, ...subscriptions, ...customers]);
  const seqs = await ids(
    "select seq::text as id from inbox.progress where resource_id = any(?::text[]) order by seq desc limit ?",
    [all, rows],
  );
  return {
    orders: ofOrders[0] ?? "{}",
    transactions: sqlArray(transactions),
    subscriptions: sqlArray(subscriptions),
    customers: sqlArray(customers),
    all,
    seqs: sqlArray(seqs),
  };
}

/** The latest closed months whose frozen rows are not more than these. */
async function chooseCloses(db: Knex, most: number): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `select id::text from (
       select c.id, sum(coalesce(r.n, 0)) over (order by c.month desc) as n
       from reports.closes c left join lateral (
         select sum(row_count) as n from reports.closed_reports where close = c.id) r on true) s
     where n <= ? order by id`,
    [most],
  );
  return rows.map(({ id }) => id);
}

/** Rows of a big table that belong to what was chosen; null where nothing is known of the table. */
function belonging(table: string, chosen: Chosen, closes: readonly string[]): Where | null {
  const one = (sql: string, ...bindings: string[]): Where => ({ sql: `where ${sql}`, bindings });
  const groups = sqlArray(mirrorResources.flatMap(namedGroups).map(({ group }) => group));
  switch (table) {
    case "mirror.orders":
      return one("id = any(?::text[])", chosen.orders);
    case "mirror.transactions":
      return one("id = any(?::text[])", chosen.transactions);
    case "mirror.subscriptions":
      return one("id = any(?::text[])", chosen.subscriptions);
    case "mirror.customers":
      return one("id = any(?::text[])", chosen.customers);
    case "mirror.versions":
      return one("resource = any(?::text[]) and id = any(?::text[])", groups, chosen.all);
    case "mirror.unbelieved":
    case "mirror.misdated":
    case "mirror.heals":
      return one("id = any(?::text[])", chosen.all);
    case "inbox.receipts":
    case "inbox.progress":
    case "inbox.repeats":
      return one("seq = any(?::bigint[])", chosen.seqs);
    case "alerts.alerts":
      return one(
        "order_id = any(?::text[]) or subscription_id = any(?::text[])",
        chosen.orders,
        chosen.subscriptions,
      );
    case "reports.closed_rows":
    case "reports.closed_movements":
    case "reports.closed_evidence":
      return one("close = any(?::bigint[])", sqlArray(closes));
    case "reports.closed_reports":
      return { sql: "", bindings: [] };
    default:
      return null;
  }
}

/** Rows of the owners that are in the copy. */
async function ownersIn(target: Knex, { owner }: Table): Promise<Where | null> {
  if (owner === null) return null;
  const { rows } = await target.raw<{ rows: { keys: string }[] }>(
    `select coalesce(array_agg(${owner.key}::text), '{}')::text as keys from ${owner.table}`,
  );
  return {
    sql: `where ${owner.column}::text = any(?::text[])`,
    bindings: [rows[0]?.keys ?? "{}"],
  };
}

const latest = ({ key }: Table, most: number): Where => ({
  sql: `${key.length === 0 ? "" : `order by ${key.map((column) => `${column} desc`).join(", ")}`} limit ?`,
  bindings: [most],
});

const rowsAtOnce = 500;

/** Each row travels as the text of a composite value: exact for every type, with the session settings of both sides. */
async function copyRows(
  source: Knex.Transaction,
  target: Knex.Transaction,
  { name, columns }: Table,
  where: Where,
  signal: AbortSignal,
): Promise<void> {
  const list = columns.join(", ");
  await source.raw(
    `declare sample no scroll cursor for select row(${list})::text as line from ${name} ${where.sql}`,
    where.bindings as string[],
  );
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await source.raw<{ rows: { line: string }[] }>(
      `fetch ${rowsAtOnce} from sample`,
    );
    if (rows.length === 0) break;
    await target.raw(
      `insert into ${name} (${list}) overriding system value
       select ${columns.map((column) => `(r).${column}`).join(", ")}
       from (select unnest(?::text[])::${name} as r offset 0) lines`,
      [sqlArray(rows.map(({ line }) => line))],
    );
  }
  await source.raw("close sample");
}

/** Of every foreign key of the copy, until none leads nowhere. */
async function removeOrphans(target: Knex.Transaction): Promise<void> {
  const { rows: keys } = await target.raw<{
    rows: { child: string; parent: string; given: string; same: string }[];
  }>(
    `select f.conrelid::regclass::text as child, f.confrelid::regclass::text as parent,
            string_agg(format('c.%I is not null', a.attname), ' and ') as given,
            string_agg(format('p.%I = c.%I', b.attname, a.attname), ' and ') as same
     from pg_constraint f
       cross join lateral unnest(f.conkey, f.confkey) as k(own, theirs)
       join pg_attribute a on a.attrelid = f.conrelid and a.attnum = k.own
       join pg_attribute b on b.attrelid = f.confrelid and b.attnum = k.theirs
     where f.contype = 'f' and f.conparentid = 0 group by f.oid, 1, 2`,
  );
  for (let removed = 1; removed > 0;) {
    removed = 0;
    for (const { child, parent, given, same } of keys) {
      const { rowCount } = await target.raw<{ rowCount: number }>(
        `delete from ${child} c where ${given} and not exists (select from ${parent} p where ${same})`,
      );
      removed += rowCount;
    }
  }
}

/** A migration that inserts rows must find free numbers. */
async function advanceIdentities(target: Knex): Promise<void> {
  const { rows } = await target.raw<{ rows: { table: string; column: string }[] }>(
    `select c.oid::regclass::text as table, quote_ident(a.attname) as column
     from pg_attribute a join pg_class c on c.oid = a.attrelid
     where a.attidentity <> '' and c.relkind in ('r', 'p') and not c.relispartition
       and c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'`,
  );
  for (const { table, column } of rows) {
    await target.raw(
      `select setval(pg_get_serial_sequence(?, ?), coalesce((select max(${column}) from ${table}), 0) + 1, false)`,
      [table, column.replaceAll('"', "")],
    );
  }
}
