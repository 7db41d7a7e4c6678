import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { changedObjects, migratedSchemas } from "../../src/platform/postgres/schema-objects.ts";
import { verifyCloses } from "../../src/reports/close/verify.ts";
import { migrateSchema, pendingSchema } from "../../src/main/schema.ts";
import { ask } from "../reports/ask.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { useTestDatabase } from "../support/use-database.ts";

/**
 * A database of version 0.1, in which a sandbox's month of traffic was mirrored, a month closed, a person erased, a row
 * spoiled by hand and found; and what its reports and its close said there.
 */
const dump = new URL("version-0.1.sql.gz", import.meta.url);
const told = JSON.parse(await readFile(new URL("version-0.1.json", import.meta.url), "utf8")) as {
  asOf: string;
  reports: Record<string, { verdict: string; rows: number; sha256: string }>;
  closes: unknown[];
  problems: unknown[];
};

const fresh = useTestDatabase();
const name = `${inject("templateDatabase")}_former`;
let former: Knex;

beforeAll(async () => {
  const server = inject("serverUrl");
  await withServer(server, (client) => client.query(`create database ${name} template template0`));
  const text = gunzipSync(await readFile(dump)).toString();
  await withServer(databaseUrl(server, name), (client) =>
    client.query(text.replace("CREATE SCHEMA public;", "")),
  );
  former = createDatabase({
    url: databaseUrl(server, name),
    poolMax: 1,
    applicationName: "tallyhook test",
  });
});
afterAll(async () => {
  await former.destroy();
  await withServer(inject("serverUrl"), (client) => client.query(`drop database ${name}`));
});

describe("a database of version 0.1", () => {
  test("that lacks one of its migrations is refused, and told what to do", async () => {
    const last = "0054_open_lists_read";
    await former("tallyhook_migrations").where({ name: last }).update({ name: "0054_else" });
    await expect(migrateSchema(former)).rejects.toThrow(
      /an early version \(up to 0054_else\)\. Run "node src\/bin\/tallyhook\.js migrate" of version 0\.1\.0 first/,
    );
    await former("tallyhook_migrations").where({ name: "0054_else" }).update({ name: last });
  });

  test("is migrated without a change to its rows", async () => {
    expect((await pendingSchema(former)).length).toBeGreaterThan(0);
    const columns = await columnsOf(former);
    // These are partitions now.
    for (const name of ["receipts", "progress", "repeats"]) delete columns[`inbox.${name}`];
    const before = await rowsOf(former, columns);
    const eventsBefore = await eventsOf(former);
    const { applied, replaced } = await migrateSchema(former);
    expect(applied).toEqual(expect.arrayContaining(["0007_useless_answers"]));
    expect(replaced.length).toBeGreaterThan(40);
    expect(await rowsOf(former, columns)).toEqual(before);
    expect(eventsBefore.length).toBeGreaterThan(100);
    expect(await eventsOf(former)).toEqual(eventsBefore);
    expect(await pendingSchema(former)).toEqual([]);
    expect(await migrateSchema(former)).toEqual({ applied: [], replaced: [] });
  });

  test("then has the schema of a new database", async () => {
    expect(await schemaOf(former)).toEqual(await schemaOf(fresh.db));
    expect(await changedObjects(former)).toEqual([]);
    const names = (db: Knex) => db("tallyhook_migrations").orderBy("name").pluck<string[]>("name");
    expect(await names(former)).toEqual(await names(fresh.db));
  });

  test.each(Object.entries(told.reports))("reports %s as before", async (key, expected) => {
    const [report = "", month = ""] = key.split(" ");
    const days = { from: `${month}-01`, to: month === "2026-10" ? "2026-10-31" : "2026-11-22" };
    const { about } = await ask(former, report, { ...days, asOf: told.asOf });
    expect({
      verdict: about.proof.verdict,
      rows: about.rows,
      sha256: about.sha256,
    }).toEqual(expected);
  });

  test("has its closed month under the same hash", async () => {
    const { closes, problems } = await verifyCloses(former);
    expect(
      closes.map(({ month, sha256, problems: own }) => ({ month, sha256, problems: own })),
    ).toEqual(told.closes);
    expect(problems).toEqual(told.problems);
  });
});

const ourSchemas = `(${migratedSchemas.map((name) => `'${name}'`).join(", ")})`;

/** A hash of each event, with its bytes and its state. */
async function eventsOf(db: Knex): Promise<unknown[]> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    "select seq, md5(e::text) as hash from inbox.events e order by seq",
  );
  return rows;
}

/** A hash of all rows of each table. */
async function rowsOf(
  db: Knex,
  columns: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  for (const [table, names] of Object.entries(columns)) {
    const { rows } = await db.raw<{ rows: { hash: string }[] }>(
      `select md5(coalesce(string_agg(t::text, E'\\n' order by t::text), '')) as hash
       from (select ${names} from ${table}) t`,
    );
    hashes[table] = rows[0]?.hash ?? "";
  }
  return hashes;
}

/** By table: its columns, in their order. */
async function columnsOf(db: Knex): Promise<Record<string, string>> {
  const { rows } = await db.raw<{ rows: { table: string; names: string }[] }>(
    `select format('%I.%I', table_schema, table_name) as table,
            string_agg(quote_ident(column_name), ', ' order by ordinal_position) as names
     from information_schema.columns join pg_tables on schemaname = table_schema and tablename = table_name
     where schemaname in ${ourSchemas} group by 1`,
  );
  return Object.fromEntries(rows.map(({ table, names }) => [table, names]));
}

/** Columns, constraints, indexes, storage, comments and sequences, a line each; of partitions only their table. */
async function schemaOf(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { line: string }[] }>(
    `with ours as (
       select c.oid, c.relname, c.relkind, c.reloptions, n.nspname || '.' || c.relname as name
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname in ${ourSchemas} and not c.relispartition and not exists (
         select from pg_index i join pg_class of on of.oid = i.indrelid
         where i.indexrelid = c.oid and of.relispartition)
     )
     select concat_ws(' ', 'column', o.name, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                      a.attidentity, a.attstorage, a.attcollation::regcollation,
                      pg_get_expr(d.adbin, d.adrelid), col_description(o.oid, a.attnum)) as line
     from ours o join pg_attribute a on a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped
     left join pg_attrdef d on d.adrelid = o.oid and d.adnum = a.attnum
     where o.relkind in ('r', 'p', 'v')
     union all
     select concat_ws(' ', 'relation', o.relkind, o.name, o.reloptions::text, obj_description(o.oid, 'pg_class')) from ours o
     union all
     select concat_ws(' ', 'constraint', o.name, c.conname, pg_get_constraintdef(c.oid))
     from ours o join pg_constraint c on c.conrelid = o.oid
     -- Version 18 has these for columns as well.
     where c.contype <> 'n'
     union all
     select pg_get_indexdef(i.indexrelid) from ours o join pg_index i on i.indrelid = o.oid
     order by 1`,
  );
  return rows.map(({ line }) => line);
}
