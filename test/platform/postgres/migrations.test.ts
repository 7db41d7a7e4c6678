import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { migrateSchema, pendingSchema } from "../../../src/main/schema.ts";
import { ConfigurationError } from "../../../src/platform/errors.ts";
import {
  type Schema,
  migrateToLatest,
  pendingMigrations,
  refusingMigrations,
} from "../../../src/platform/postgres/migrations.ts";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import { changedObjects, migratedSchemas } from "../../../src/platform/postgres/schema-objects.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let folder: string;
let schema: Schema;

/** An empty database and an empty program. */
beforeEach(async () => {
  database = await createTestDatabase({ poolMax: 1 });
  await database.db.raw(
    `drop schema ${migratedSchemas.join(", ")} cascade;
     drop table tallyhook_migrations, tallyhook_schema_objects;
     create schema reports`,
  );
  folder = await mkdtemp(join(tmpdir(), "tallyhook-migrations-"));
  await mkdir(join(folder, "own"));
  const url = pathToFileURL(`${folder}/`);
  schema = { migrations: url, objects: [], ownMigrations: new URL("own/", url), ownObjects: [] };
});
afterEach(async () => {
  await database.destroy();
  await rm(folder, { recursive: true, force: true });
});

/** Writes a file of the program, and gives back where it is. */
async function write(name: string, text: string): Promise<URL> {
  await writeFile(join(folder, name), text);
  return new URL(name, schema.migrations);
}
const migrate = () => migrateToLatest(database.db, schema);
const isThere = (table: string) => database.db.schema.hasTable(table);
async function valueOf(sql: string): Promise<unknown> {
  const { rows } = await database.db.raw<{ rows: { value: unknown }[] }>(`select ${sql} as value`);
  return rows[0]?.value;
}

describe("numbered files", () => {
  test("are applied in order, once, and listed without changing anything", async () => {
    await write("0002_b.sql", "alter table a rename to b;");
    await write("0001_a.sql", "create table a (id int); comment on table a is 'Why?';");
    await write("0003_notes.md", "");
    await write("from-elsewhere.sql", "select nonsense");
    expect(await pendingMigrations(database.db, schema)).toEqual(["0001_a", "0002_b"]);
    expect(await isThere("tallyhook_migrations")).toBe(false);
    expect(await migrate()).toEqual({ applied: ["0001_a", "0002_b"], replaced: [] });
    expect(await migrate()).toEqual({ applied: [], replaced: [] });
    expect(await pendingMigrations(database.db, schema)).toEqual([]);
  });

  test("none, and no folder of them, are nothing to do", async () => {
    expect(await migrate()).toEqual({ applied: [], replaced: [] });
    const nowhere = new URL("nowhere/", schema.migrations);
    schema = { ...schema, migrations: nowhere, ownMigrations: nowhere };
    expect(await migrate()).toEqual({ applied: [], replaced: [] });
  });

  test("that fail leave nothing behind, and say where they failed", async () => {
    await write("0001_a.sql", "create table a (id int);");
    await write("0002_b.sql", "-- Two lines\n-- of comment.\nselect nonsense from a;");
    const failed = migrate();
    await expect(failed).rejects.toBeInstanceOf(ConfigurationError);
    await expect(failed).rejects.toThrow(/0002_b\.sql, line 3: column "nonsense" does not exist$/);
    expect(await isThere("a")).toBe(false);
    await rm(join(folder, "0002_b.sql"));
    expect(await migrate()).toEqual({ applied: ["0001_a"], replaced: [] });
  });

  test("are applied by one of two processes that migrate at once", async () => {
    await write("0001_a.sql", "create table a (id int);");
    const open = (): Knex => createDatabase({ url: database.url, poolMax: 1, applicationName: "migrating" });
    const databases = [open(), open(), open()];
    const done = await Promise.all(databases.map((db) => migrateToLatest(db, schema)));
    expect(done.flatMap(({ applied }) => applied)).toEqual(["0001_a"]);
    await Promise.all(databases.map((db) => db.destroy()));
  });

  test("of a newer version are refused, and the database is left as it is", async () => {
    await write("0001_a.sql", "select 1;");
    await write("0002_from_the_future.sql", "select 1;");
    await migrate();
    await rm(join(folder, "0002_from_the_future.sql"));
    const refused = migrate();
    await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
    await expect(refused).rejects.toThrow(/newer version of Tallyhook \(it has 0002_from_the_future\)/);
  });
});

describe("a newer version's files", () => {
  const removed = async (name: string) => rm(join(folder, `${name}.sql`));
  const refusing = async () => (await refusingMigrations(database.db, schema.migrations)).map(({ name }) => name);

  test("that need a file which this version does not know refuse it, online or not; others do not", async () => {
    await write("0001_a.sql", "create table a (id int);");
    await write("0002_b.sql", "alter table a add column b int;");
    await write("0003_c.sql", "-- Why.\n-- needs 0002_b\nalter table a drop column id;");
    await write("0004_d.sql", "-- online\n-- needs 0002_b\ndrop index concurrently if exists i;");
    await migrate();
    expect(await refusing()).toEqual([]);
    // The release before: it knows what 0003 and 0004 need.
    await removed("0004_d");
    await removed("0003_c");
    expect(await refusing()).toEqual([]);
    // The one before that.
    await removed("0002_b");
    expect(await refusing()).toEqual(["0003_c", "0004_d"]);
  });

  test("are asked for also where an earlier version migrated last, and migrating goes on there", async () => {
    await write("0001_a.sql", "select 1;");
    await migrate();
    await database.db.raw("alter table tallyhook_migrations drop column needs");
    expect(await refusing()).toEqual([]);
    await write("0002_b.sql", "-- needs 0001_a\nselect 1;");
    expect((await migrate()).applied).toEqual(["0002_b"]);
    await removed("0002_b");
    await removed("0001_a");
    expect(await refusing()).toEqual(["0002_b"]);
  });
});

describe("functions, views and triggers", () => {
  const one = (body: string) => `create or replace function reports.one() returns int language sql as '${body}';`;

  test("are made again when their file changes, and only then", async () => {
    schema = { ...schema, objects: [await write("one.sql", one("select 1"))] };
    expect((await migrate()).replaced).toEqual([expect.stringMatching(/one\.sql$/)]);
    expect((await migrate()).replaced).toEqual([]);
    await write("one.sql", one("select 2"));
    expect((await migrate()).replaced).toHaveLength(1);
    expect(await valueOf("reports.one()")).toBe(2);
  });

  test("keep grants and what others built on them", async () => {
    const file = await write("v.sql", "create or replace view reports.v as select 1 as n;");
    schema = { ...schema, objects: [file] };
    await migrate();
    await database.db.raw("grant select on reports.v to public; create view public.theirs as select n from reports.v");
    await write("v.sql", "create or replace view reports.v as select 2 as n, 3 as m;");
    await migrate();
    expect(await valueOf("(select n from public.theirs)")).toBe(2);
    expect(await valueOf("has_table_privilege('public', 'reports.v', 'select')")).toBe(true);
  });

  test("may get other arguments, results and columns", async () => {
    const file = await write(
      "many.sql",
      `create or replace function reports.f(a int) returns int language sql as 'select a';
       create or replace view reports.v as select 1 as n, 2 as m;`.replaceAll("\n       ", "\n"),
    );
    const caller = await write(
      "caller.sql",
      "create or replace function reports.g() returns int language sql as 'select reports.f(1)';",
    );
    schema = { ...schema, objects: [file, caller] };
    await migrate();
    await write(
      "many.sql",
      `create or replace function reports.f(a int, b int default 5) returns int language sql as 'select a + b';
       create or replace view reports.v as select 7 as other;`.replaceAll("\n       ", "\n"),
    );
    await migrate();
    expect(await valueOf("reports.g()")).toBe(6);
    expect(await valueOf("(select other from reports.v)")).toBe(7);
    await write(
      "many.sql",
      `create or replace function reports.f(a int, b int default 5) returns text language sql as 'select a::text';
       create or replace view reports.v as select 7 as other;`.replaceAll("\n       ", "\n"),
    );
    await write(
      "caller.sql",
      "create or replace function reports.g() returns text language sql as 'select reports.f(1)';",
    );
    await migrate();
    expect(await valueOf("reports.g()")).toBe("1");
  });

  test("may get other arguments also where a version without a record made them", async () => {
    await database.db.raw("create function reports.f(a int) returns int language sql as 'select a'");
    const file = await write(
      "f.sql",
      "create or replace function reports.f(a int, b int default 5) returns int language sql as 'select a + b';",
    );
    schema = { ...schema, objects: [file] };
    await migrate();
    expect(await valueOf("reports.f(1)")).toBe(6);
  });

  test("are not torn away from under what others built on them: it is named", async () => {
    const file = await write("v.sql", "create or replace view reports.v as select 1 as n;");
    schema = { ...schema, objects: [file] };
    await migrate();
    await database.db.raw("create view public.theirs as select n from reports.v");
    await write("v.sql", "create or replace view reports.v as select 2 as other;");
    const refused = migrate();
    await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
    await expect(refused).rejects.toThrow(/view theirs depends on view reports\.v/);
    expect(await valueOf("(select n from reports.v)")).toBe(1);
  });

  test("that no file makes any more are dropped; what somebody else made stays", async () => {
    const objects = [
      await write("one.sql", one("select 1")),
      await write("v.sql", "create or replace view reports.v as select reports.one() as n;"),
    ];
    schema = { ...schema, objects };
    await migrate();
    await database.db.raw("create view reports.theirs as select 1 as n");
    schema = { ...schema, objects: [] };
    await migrate();
    expect(await changedObjects(database.db)).toBeNull();
    expect(await valueOf("to_regclass('reports.v')")).toBeNull();
    expect(await valueOf("to_regproc('reports.one')")).toBeNull();
    expect(await valueOf("to_regclass('reports.theirs')")).not.toBeNull();
  });

  test("that were changed, switched off or dropped by hand are put back", async () => {
    await write("0001_t.sql", "create table reports.t (n int);");
    const file = await write(
      "guard.sql",
      [
        "create or replace function reports.refuse() returns trigger language plpgsql as",
        "$$ begin raise exception 'refused'; end $$;",
        "create or replace trigger guard before delete on reports.t",
        "  for each statement execute function reports.refuse();",
        "create or replace view reports.v as select n from reports.t;",
      ].join("\n"),
    );
    schema = { ...schema, objects: [file] };
    await migrate();
    await database.db.raw(
      "alter table reports.t disable trigger guard; drop view reports.v; create view reports.theirs as select 1 as n",
    );
    expect(await changedObjects(database.db)).toEqual([
      { kind: "trigger", name: "guard on reports.t", change: "changed" },
      { kind: "view", name: "reports.v", change: "missing" },
      { kind: "view", name: "reports.theirs", change: "added" },
    ]);
    expect((await migrate()).replaced).toHaveLength(1);
    await expect(database.db.raw("delete from reports.t")).rejects.toThrow("refused");
    expect(await changedObjects(database.db)).toEqual([{ kind: "view", name: "reports.theirs", change: "added" }]);
  });

  test("may be constraint triggers, which are made again where they changed", async () => {
    await write("0001_t.sql", "create table reports.t (n int);");
    const guard = (n: number) =>
      [
        "create or replace function reports.refuse() returns trigger language plpgsql as",
        "$$ begin raise exception 'refused'; end $$;",
        "create constraint trigger guard",
        `  after insert on reports.t deferrable initially deferred for each row when (new.n = ${n})`,
        "  execute function reports.refuse();",
      ].join("\n");
    schema = { ...schema, objects: [await write("guard.sql", guard(1))] };
    await migrate();
    const insert = (n: number) => database.db.raw(`insert into reports.t values (${n})`);
    await write("guard.sql", guard(2));
    expect((await migrate()).replaced).toHaveLength(1);
    await insert(1);
    await expect(insert(2)).rejects.toThrow("refused");
    await database.db.raw("alter table reports.t disable trigger guard");
    expect((await migrate()).replaced).toHaveLength(1);
    await expect(insert(2)).rejects.toThrow("refused");
    expect(await changedObjects(database.db)).toEqual([]);
  });

  test("that a file does not make, or two files make, are refused with the file's name", async () => {
    schema = { ...schema, objects: [await write("nothing.sql", "select 1;")] };
    await expect(migrate()).rejects.toThrow(/nothing\.sql defines nothing/);
    schema = {
      ...schema,
      objects: [await write("a.sql", one("select 1")), await write("b.sql", one("select 2"))],
    };
    await expect(migrate()).rejects.toThrow(/b\.sql defines function reports\.one, which .*a\.sql already defines/);
  });
});

describe("a merchant's own schema", () => {
  test("has its own numbers, stands on the program's, and outlives its upgrades", async () => {
    await write("0001_t.sql", "create table reports.t (n int);");
    schema = {
      ...schema,
      objects: [await write("f.sql", "create or replace function reports.f() returns int language sql as 'select 1';")],
      ownObjects: [
        await write(
          "own/mine.sql",
          "create or replace function bi.mine() returns int language sql as 'select max(n) from bi.targets';",
        ),
      ],
    };
    await write("own/0001_targets.sql", "create schema bi; create table bi.targets as select reports.f() as n;");
    expect(await migrate()).toEqual({
      applied: ["0001_t", "own/0001_targets"],
      replaced: [expect.stringMatching(/f\.sql$/), expect.stringMatching(/own\/mine\.sql$/)],
    });
    await write("0002_more.sql", "alter table reports.t add column m int;");
    await write("own/0002_more.sql", "insert into bi.targets values (7);");
    expect(await pendingMigrations(database.db, schema)).toEqual(["0002_more", "own/0002_more"]);
    expect((await migrate()).applied).toEqual(["0002_more", "own/0002_more"]);
    expect(await valueOf("bi.mine()")).toBe(7);
    expect(await changedObjects(database.db)).toEqual([]);
  });

  test("cannot replace what the program makes", async () => {
    const text = "create or replace function reports.f() returns int language sql as 'select 1';";
    schema = {
      ...schema,
      objects: [await write("f.sql", text)],
      ownObjects: [await write("own/f.sql", text)],
    };
    await expect(migrate()).rejects.toThrow(/own\/f\.sql defines function reports\.f, which/);
  });
});

test("the program's own schema is whole in a cloned test database", async () => {
  const clone = await createTestDatabase({ poolMax: 1 });
  expect(await pendingSchema(clone.db)).toEqual([]);
  expect(await migrateSchema(clone.db)).toEqual({ applied: [], replaced: [] });
  await clone.destroy();
});
