import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UnreachableError } from "../../../src/platform/errors.ts";
import type { MigrateOptions } from "../../../src/platform/postgres/migration-session.ts";
import { type Schema, migrateToLatest, pendingMigrations } from "../../../src/platform/postgres/migrations.ts";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import { pendingObjects } from "../../../src/platform/postgres/schema-objects.ts";
import { readSqlFile } from "../../../src/platform/postgres/sql-file.ts";
import { insertNoRows } from "../../../src/core/inbox/store-batch.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { untilWaiting } from "../../support/until-waiting.ts";

let database: TestDatabase;
let folder: string;
let schema: Schema;

/** The program's tables, and a program of which only the next files are there. */
beforeEach(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "tallyhook-migrations-"));
  const url = pathToFileURL(`${folder}/`);
  schema = { migrations: url, objects: [], ownMigrations: new URL("own/", url), ownObjects: [] };
  await database.db.raw(
    "truncate tallyhook_migrations, tallyhook_schema_objects; create table public.t (id int primary key, n int)",
  );
});
afterEach(async () => {
  await database.destroy();
  await rm(folder, { recursive: true, force: true });
});

const write = (name: string, text: string) => writeFile(join(folder, name), text);
const migrate = (options: MigrateOptions = {}) =>
  migrateToLatest(database.db, schema, { lockTimeoutMs: 100, random: () => 1, ...options });

/** Does something while another session has read the inbox and not ended its transaction. */
async function whileReading(work: (reader: Knex.Transaction) => Promise<void>): Promise<void> {
  const other = createDatabase({ url: database.url, poolMax: 1, applicationName: "a long report" });
  try {
    await other.transaction(async (reader) => {
      await reader.raw("select count(*) from inbox.receipts");
      await work(reader);
    });
  } finally {
    await other.destroy();
  }
}

test("an insert into the inbox passes a migration that waits for the table behind a long report", async () => {
  await write("0001_wide.sql", "alter table inbox.receipts add column wide int;");
  const lines: string[] = [];
  let migrated: Promise<unknown> | undefined;
  await whileReading(async () => {
    migrated = migrate({ onWait: (line) => lines.push(line) });
    const [waiting] = await untilWaiting(database.db);
    const inbox = await database.db.client.acquireConnection();
    // Queued behind the migration or not: it ends before the report does.
    await insertNoRows(inbox);
    await database.db.client.releaseConnection(inbox);
    expect(waiting).toBeDefined();
    expect(await database.db.schema.withSchema("inbox").hasColumn("receipts", "wide")).toBe(false);
    while (lines.length === 0) await untilWaiting(database.db);
  });
  expect(await migrated).toEqual({ applied: ["0001_wide"], replaced: [] });
  expect(lines[0]).toMatch(
    /0001_wide\.sql, line 1 \(alter table inbox\.receipts add column wide int\) waits for process \d+ \(a long report, idle in transaction, transaction \d+ s, last query \d+ s ago\)\. To end it: select pg_terminate_backend\(\d+\); /,
  );
});

test("a migration that gets no lock in time says so, and nothing is half done", async () => {
  await write("0001_new.sql", "create table public.made (id int);");
  await write("0002_wide.sql", "alter table inbox.receipts add column wide int;");
  await whileReading(async () => {
    const failed = migrate({ waitMs: 1 });
    await expect(failed).rejects.toBeInstanceOf(UnreachableError);
    await expect(failed).rejects.toThrow(
      /^Not migrated, and nothing is half done: given up after 1 attempt in 0 minutes\. \S+0002_wide\.sql, line 1/,
    );
  });
  expect(await database.db.schema.hasTable("made")).toBe(false);
  expect(await migrate()).toEqual({ applied: ["0001_new", "0002_wide"], replaced: [] });
});

test("a session's own limits are as before when its connection has migrated", async () => {
  const one = createDatabase({
    url: `${database.url}&options=-c+lock_timeout%3D7s`,
    poolMax: 1,
    applicationName: "tallyhook test",
  });
  await write("0001_online.sql", "-- online\ncreate index concurrently if not exists t_n on public.t (n);");
  await migrateToLatest(one, schema);
  const { rows } = await one.raw<{ rows: unknown[] }>(
    `select current_setting('lock_timeout') as lock_timeout,
            (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as held`,
  );
  expect(rows).toEqual([{ lock_timeout: "7s", held: 0 }]);
  await one.destroy();
});

test("an index that is built online waits for a transaction, and nobody waits for it", async () => {
  await write("0001_online.sql", "-- online\ncreate index concurrently if not exists t_n on public.t (n);");
  const other = createDatabase({
    url: database.url,
    poolMax: 1,
    applicationName: "tallyhook test",
  });
  let migrated: Promise<unknown> | undefined;
  await other.transaction(async (writer) => {
    await writer.raw("insert into public.t values (1, 1)");
    migrated = migrate();
    await untilWaiting(database.db);
    await database.db.raw("insert into public.t values (2, 2)");
  });
  expect(await migrated).toEqual({ applied: ["0001_online"], replaced: [] });
  await other.destroy();
});

test("an index that a crash left invalid is built again, and its file is recorded only then", async () => {
  await database.db.raw("insert into public.t values (1, 7), (2, 7)");
  await write("0001_online.sql", "-- online\ncreate unique index concurrently if not exists t_n on public.t (n);\n");
  await expect(migrate()).rejects.toThrow(/0001_online\.sql: could not create unique index "t_n"/);
  expect(await pendingMigrations(database.db, schema)).toEqual(["0001_online"]);
  expect(await isValid("t_n")).toBe(false);
  await database.db.raw("delete from public.t where id = 2");
  expect((await migrate()).applied).toEqual(["0001_online"]);
  expect(await isValid("t_n")).toBe(true);
});

async function isValid(index: string): Promise<unknown> {
  const { rows } = await database.db.raw<{ rows: { indisvalid: boolean }[] }>(
    "select indisvalid from pg_index where indexrelid = to_regclass(?)",
    [`public.${index}`],
  );
  return rows[0]?.indisvalid;
}

test("online files run after what no file builds on them for, and before what one does", async () => {
  await database.db.raw("insert into public.t select i, null from generate_series(1, 10) i");
  const order: string[] = [];
  const watcher = {
    ran: async ({ file, line }: { file: string; line: number | null }) => {
      if (line !== null) order.push(`${file.slice(-12, -4)}:${line}`);
    },
    released: () => void order.push("released"),
  };
  await write("0001_one.sql", "alter table public.t add constraint t_n check (n is not null) not valid;");
  await write(
    "0002_two.sql",
    "-- online\n-- repeat\nupdate public.t set n = 0 where id in (select id from public.t where n is null limit 4);\nalter table public.t validate constraint t_n;",
  );
  await write("0003_six.sql", "alter table public.t alter column n set not null;");
  await write("0004_end.sql", "-- online\ncreate index concurrently if not exists t_m on public.t (n);");
  await write("0005_fin.sql", "-- online\nselect 1;");
  expect((await migrate({ watcher })).applied).toEqual(["0001_one", "0002_two", "0003_six", "0004_end", "0005_fin"]);
  const batches = ["0002_two:3", "0002_two:3", "0002_two:3", "0002_two:3", "released"];
  expect(order).toEqual([
    "0001_one:1",
    "released",
    ...batches,
    "0002_two:4",
    "released",
    "0003_six:1",
    "released",
    "0004_end:2",
    "released",
    "released",
    "0005_fin:2",
    "released",
    "released",
  ]);
});

test("a program whose functions a newer one has replaced may start beside it, and one before its migration not", async () => {
  const [old, next] = ["select 1", "select 2"].map(
    (body) => `create or replace function reports.one() returns int language sql as '${body}';`,
  );
  const text = async (content: string | undefined) => {
    await write("one.sql", content ?? "");
    const url = new URL("one.sql", schema.migrations);
    schema = { ...schema, objects: [url] };
    return readSqlFile(url);
  };
  const oldFile = await text(old);
  expect(await pendingObjects(database.db, [oldFile])).toHaveLength(1);
  await migrate();
  const newFile = await text(next);
  expect(await pendingObjects(database.db, [newFile])).toHaveLength(1);
  await migrate();
  expect(await pendingObjects(database.db, [oldFile])).toEqual([]);
  // After the way back, the newer one has to migrate again.
  await text(old);
  await migrate();
  expect(await pendingObjects(database.db, [oldFile])).toEqual([]);
  expect(await pendingObjects(database.db, [newFile])).toHaveLength(1);
});
