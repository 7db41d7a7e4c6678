import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registerBackup } from "../../src/main/cli/backup/backup.ts";
import type { Manifest } from "../../src/main/cli/backup/manifest.ts";
import { registerEvents } from "../../src/parts/browse/events/command.ts";
import { registerMigrate } from "../../src/main/cli/migrate.ts";
import { registerUpgrade } from "../../src/main/cli/upgrade/upgrade.ts";
import { changedObjects, migratedSchemas } from "../../src/platform/postgres/schema-objects.ts";
import { verifyCloses } from "../../src/parts/reports/close/verify.ts";
import { migrateSchema, pendingSchema } from "../../src/main/schema.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { ask } from "../reports/ask.ts";
import { makeDataDir } from "../support/data-directory.ts";
import { debianPostgresInstalled, startDebianServer } from "../support/debian-postgres.ts";
import { type ReleasedDatabase, createReleasedDatabase, releasedVersions } from "../support/released-database.ts";
import { rounds } from "../support/rounds.ts";
import { useTestDatabase } from "../support/use-database.ts";

/** What the reports and the close of the released databases said in version 0.1. */
const told = JSON.parse(await readFile(new URL("reports-0.1.json", import.meta.url), "utf8")) as {
  asOf: string;
  reports: Record<string, { verdict: string; rows: number; sha256: string }>;
  closes: unknown[];
  problems: unknown[];
};

const fresh = useTestDatabase();
let dataDir: string;
beforeAll(async () => {
  dataDir = await makeDataDir();
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

test("every released version has a database here", async () => {
  const changes = await readFile(new URL("../../CHANGELOG.md", import.meta.url), "utf8");
  const released = [...changes.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version]) => version);
  expect([...releasedVersions].toReversed()).toEqual(released);
});

/** The last migration of version 0.1, which has other names than those of later versions. */
const last = "0054_open_lists_read";

/** The oldest goes through every migration; `npm run test:long` goes through those of the others as well. */
const migratedVersions = releasedVersions.slice(0, rounds(1, releasedVersions.length));

describe.each(migratedVersions)("a database of version %s", (version) => {
  let released: ReleasedDatabase;
  let former: Knex;
  beforeAll(async () => {
    released = await createReleasedDatabase(version);
    former = released.db;
  });
  afterAll(() => released.destroy());

  const run = async (register: Parameters<typeof runCommand>[0], ...args: string[]) => {
    const env = { DATABASE_URL: released.url, TALLYHOOK_DATA_DIR: dataDir };
    const { out, error, exitCode } = await runCommand(register, args, { env });
    return { out, error, exitCode };
  };

  test("is told by a start and by upgrade what it lacks, and how to get it", async () => {
    const { error } = await run(registerEvents, "events", "list");
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^The database lacks 0007_useless_answers, .*\. Run "node src\/bin\/tallyhook\.js migrate" first\.$/,
      ) as string,
    });
    const upgrade = await run(registerUpgrade, "upgrade");
    expect(upgrade).toMatchObject({ error: null, exitCode: null });
    expect(upgrade.out).toMatch(/^The database lacks 0007_useless_answers, /);
  });

  test.runIf(version === "0.1.0")(
    "that lacks one of its migrations is refused by every command, and told what to do",
    async () => {
      await former("tallyhook_migrations").where({ name: last }).update({ name: "0054_else" });
      const advice =
        /an early version \(up to 0054_else\)\. Run "node src\/bin\/tallyhook\.js migrate" of version 0\.1\.0 first/;
      for (const [register, ...args] of [
        [registerMigrate, "migrate"],
        [registerUpgrade, "upgrade"],
        [registerUpgrade, "upgrade", "--rehearse"],
        [registerEvents, "events", "list"],
      ] as const) {
        const { error } = await run(register, ...args);
        expect(error, args.join(" ")).toMatchObject({
          exitCode: 2,
          message: expect.stringMatching(advice) as string,
        });
      }
      await former("tallyhook_migrations").where({ name: "0054_else" }).update({ name: last });
    },
  );

  test("is migrated without a change to its rows", async () => {
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
    expect((await run(registerUpgrade, "upgrade")).out).toBe(
      "Nothing to upgrade: the database is that of this version.\n",
    );
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
    expect(closes.map(({ month, sha256, problems: own }) => ({ month, sha256, problems: own }))).toEqual(told.closes);
    expect(problems).toEqual(told.problems);
  });
});

describe.skipIf(!debianPostgresInstalled)("on a server of which pg_dump is here", () => {
  let server: Awaited<ReturnType<typeof startDebianServer>>;
  beforeAll(async () => {
    server = await startDebianServer();
  });
  afterAll(() => server.destroy());

  test.each(migratedVersions)("a database of version %s is backed up before its upgrade", async (version) => {
    const { url, destroy } = await createReleasedDatabase(version, server.url);
    const folder = join(dataDir, version);
    const { out, error } = await runCommand(registerBackup, ["backup", folder, "--json"], {
      env: { DATABASE_URL: url, TALLYHOOK_DATA_DIR: dataDir },
    });
    expect(error).toBeNull();
    const { manifest } = JSON.parse(out) as { manifest: Manifest };
    expect(manifest.migrations.at(-1)).toBe("0006_alerts");
    await destroy();
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
async function rowsOf(db: Knex, columns: Readonly<Record<string, string>>): Promise<Record<string, string>> {
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
