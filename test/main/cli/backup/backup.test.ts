import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { registerAlerts } from "../../../../src/parts/alerts/cli/alerts.ts";
import { registerBackup } from "../../../../src/main/cli/backup/backup.ts";
import { type Manifest, readManifest, tablesOf } from "../../../../src/main/cli/backup/manifest.ts";
import { erasedByLaterBackups, restoreBackup } from "../../../../src/main/cli/backup/restore-backup.ts";
import { registerRestore } from "../../../../src/main/cli/backup/restore.ts";
import { tableDecisions } from "../../../../src/main/database-rights.ts";
import { checkDatabase } from "../../../../src/main/cli/doctor/database.ts";
import { aloneInRestore, beginRestore, isRestoreOpen } from "../../../../src/app/open-restore.ts";
import { migrateSchema } from "../../../../src/main/schema.ts";
import { findClientPrograms, libpqEnvironment } from "../../../../src/platform/postgres/client-programs.ts";
import { exists } from "../../../../src/platform/files.ts";
import { createDatabase } from "../../../../src/platform/postgres/pool.ts";
import { debianPostgresInstalled, startDebianServer } from "../../../support/debian-postgres.ts";
import { eventually } from "../../../support/eventually.ts";
import { databaseUrl, withServer } from "../../../support/server-commands.ts";
import { useTestDatabase } from "../../../support/use-database.ts";
import { runCommand } from "../command-line.ts";
import { allParts } from "../../../../src/main/parts.ts";

const database = useTestDatabase();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-backups-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("every table of the migrated schema has a decision, and no other", async () => {
  const tables = (await tablesOf(database.db)).map(({ name }) => name);
  expect(Object.keys(tableDecisions).sort()).toEqual(tables);
});

test("the password reaches pg_dump by its environment, and so does what the URL says of TLS", () => {
  const url = "postgres://us%40er:p%2Fw@[::1]:6432/da%20ta?sslmode=no-verify&sslrootcert=/ca.pem";
  expect(libpqEnvironment(url)).toEqual({
    PGHOST: "::1",
    PGPORT: "6432",
    PGUSER: "us@er",
    PGPASSWORD: "p/w",
    PGDATABASE: "da ta",
    PGSSLMODE: "require",
    PGSSLROOTCERT: "/ca.pem",
    PGAPPNAME: "tallyhook backup",
    LC_ALL: "C",
  });
});

test.each(["a%3Db", "a=b", "a%20b", "a%2Fb", "%C3%A9", "postgres://x", "a%5Cb"])(
  "%s in a URL's path is one database to the driver and to pg_dump",
  (path) => {
    const connectionString = `postgres://u@h/${path}`;
    const { database } = new pg.Client({ connectionString });
    expect(libpqEnvironment(connectionString)).toMatchObject({ PGDATABASE: database });
  },
);

test.runIf(debianPostgresInstalled)("an older pg_dump than the server's is refused, with what to install", async () => {
  const { error } = await runCommand(registerBackup, ["backup", folder], {
    env: database.environment,
  });
  expect(String(error)).toMatch(/The server is PostgreSQL 18, .* found 15\.\d+ .*postgresql-client-18 .*--pg-bin/);
  expect(await readdir(folder)).toEqual([]);
});

test("a backup outlives what role and database set against long transactions", async () => {
  const name = new URL(database.directUrl).pathname.slice(1);
  const set = (what: string) =>
    withServer(database.directUrl, (client) => client.query(`alter database ${name} ${what}`));
  const names = ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"];
  for (const setting of names) await set(`set ${setting} = '1s'`);
  const programs = await mkdtemp(join(folder, "programs-"));
  for (const program of ["pg_dump", "pg_restore"]) {
    const script = `if [ "$1" = --version ]; then echo "${program} (PostgreSQL) 18.1"; exit; fi\nsleep 1.3\nexit 7\n`;
    await writeFile(join(programs, program), `#!/bin/sh\n${script}`, { mode: 0o755 });
  }
  const args = ["backup", join(folder, "outlived"), "--pg-bin", programs];
  const { error } = await runCommand(registerBackup, args, { env: database.environment });
  for (const setting of names) await set(`reset ${setting}`);
  // What ended it is pg_dump, and not its transaction.
  expect(String(error)).toMatch(/pg_dump failed \(exit code 7\)/);
});

describe.runIf(debianPostgresInstalled)("on a server whose pg_dump is there", () => {
  let url: string;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const server = await startDebianServer();
    stop = server.destroy;
    await withServer(server.url, (client) => client.query("create database shop"));
    url = databaseUrl(server.url, "shop");
    const db = createDatabase({ url, poolMax: 2, applicationName: "tallyhook test" });
    await migrateSchema(db);
    await db("people.accounts").insert({ email: "ada@shop.example", roles: "{admin}" });
    await db.raw(`
      insert into people.sessions (token_hash, account_id, account_version, method, address, user_agent, began_at, last_seen_at)
      select '\\x01', id, 1, 'password', '127.0.0.1', '', now(), now() from people.accounts`);
    await db("mirror.erasures").insert({ customer_id: "cus_erased" });
    await db.raw("create schema bullmq; create table bullmq.jobs (id text); create table public.own (n integer)");
    await db.destroy();
  });
  afterAll(() => stop());

  const backUp = (directory: string, ...more: string[]) =>
    runCommand(registerBackup, ["backup", directory, ...more], { env: { DATABASE_URL: url } });
  const fresh = async (): Promise<string> => {
    const directory = join(folder, randomBytes(4).toString("hex"));
    await mkdir(directory);
    return directory;
  };

  /** A folder with a pg_dump and a pg_restore that do this. */
  async function programsThat(dump: string, restore = "exit 0"): Promise<string> {
    const programs = await fresh();
    for (const [name, script] of [
      ["pg_dump", dump],
      ["pg_restore", restore],
    ] as const) {
      const path = join(programs, name);
      await writeFile(
        path,
        `#!/bin/sh\nif [ "$1" = --version ]; then echo "${name} (PostgreSQL) 15.1"; exit; fi\n${script}\n`,
      );
      await chmod(path, 0o755);
    }
    return programs;
  }

  test("a backup is one folder that only its owner can read, with the rows of one moment and without sign-ins", async () => {
    const directory = await fresh();
    const { out, error } = await backUp(directory, "--json");
    expect(error).toBeNull();
    const made = JSON.parse(out) as { folder: string; manifest: Manifest };
    const { manifest } = made;
    expect(manifest.rows).toMatchObject({ "people.accounts": 1, "public.own": 0 });
    expect(Object.keys(manifest.rows)).not.toContain("people.sessions");
    expect(manifest.leftOut).toEqual(expect.arrayContaining(["people.sessions", "alerts.heartbeats", "bullmq.*"]));
    expect(manifest.erased).toEqual(["cus_erased"]);
    const noted = await withServer(url, (client) =>
      client.query<{ is: boolean }>('select taken_at = $1 as "is" from mirror.backups', [manifest.takenAt]),
    );
    expect(noted.rows).toEqual([{ is: true }]);
    expect(await readdir(directory)).toEqual([made.folder.slice(directory.length + 1)]);
    expect(made.folder).toMatch(/\/shop-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/);
    const modes = await Promise.all(
      ["", "database.dump", "manifest.json"].map(async (name) => (await stat(join(made.folder, name))).mode & 0o777),
    );
    expect(modes).toEqual([0o700, 0o600, 0o600]);
    const dump = await readFile(join(made.folder, "database.dump"));
    expect(dump.length).toBe(manifest.dump.bytes);
  });

  describe("beside a schema that somebody else made", () => {
    let owned: string;
    const asOwner = { env: {} as Record<string, string> };
    const ran = (sql: string) => withServer(url, (client) => client.query(sql));
    const backUpAsOwner = async () => {
      const ran = await runCommand(registerBackup, ["backup", await fresh(), "--json"], asOwner);
      return { ...ran, made: JSON.parse(ran.out || "null") as Made };
    };
    interface Made {
      folder: string;
      manifest: Manifest;
      unreadable: { schema: string; grant: string }[];
    }

    beforeAll(async () => {
      await ran('create role keeper login; create role "Shop" login');
      await ran("create database kept owner keeper");
      const login = (user: string) => {
        const to = new URL(databaseUrl(url, "kept"));
        to.username = user;
        return to.href;
      };
      owned = login("keeper");
      asOwner.env = { DATABASE_URL: owned };
      const db = createDatabase({ url: owned, poolMax: 2, applicationName: "tallyhook test" });
      await migrateSchema(db);
      await db.raw('grant create on database kept to "Shop"');
      await db.destroy();
      await withServer(login("Shop"), (client) =>
        client.query(
          'create schema "Shop"; create table "Shop".seen (seq bigserial primary key); insert into "Shop".seen values (7)',
        ),
      );
    });
    const inKept = (sql: string) => withServer(databaseUrl(url, "kept"), (c) => c.query(sql));

    test("a backup leaves out what its user may not read, and names it with the grant that mends it", async () => {
      const { error, made } = await backUpAsOwner();
      expect(error).toBeNull();
      expect(made.manifest.leftOut).toContain("Shop.*");
      expect(Object.keys(made.manifest.rows)).not.toContain("Shop.seen");
      const [left] = made.unreadable;
      expect(left?.schema).toBe("Shop");
      const { out } = await runCommand(registerBackup, ["backup", await fresh()], asOwner);
      expect(out).toContain("Left out: the schema Shop");
      expect(out).toContain(left?.grant);

      await inKept(left?.grant ?? "");
      const mended = await backUpAsOwner();
      expect(mended.error).toBeNull();
      expect(mended.made.unreadable).toEqual([]);
      expect(mended.made.manifest.rows["Shop.seen"]).toBe(1);
    });

    test("a table that comes later in it is in the backup as well", async () => {
      await inKept('set role "Shop"; create table "Shop".later (seq bigserial primary key)');
      const { error, made } = await backUpAsOwner();
      expect(error).toBeNull();
      expect(made.manifest.rows["Shop.later"]).toBe(0);
    });

    test("a backup is refused where it needs what its user may not read, with the grant", async () => {
      await inKept(
        'create view reports.own_seen as select seq from "Shop".seen; alter view reports.own_seen owner to keeper',
      );
      await inKept('revoke usage on schema "Shop" from keeper');
      const { error } = await backUpAsOwner();
      expect(error).toMatchObject({
        exitCode: 2,
        message: expect.stringMatching(
          /reports\.own_seen needs .*"Shop".*grant usage on schema "Shop" to keeper/,
        ) as string,
      });
      await inKept("drop view reports.own_seen");
      await inKept("create table public.theirs (n integer)");
      const { error: theirs } = await backUpAsOwner();
      expect(theirs).toMatchObject({
        exitCode: 2,
        message: expect.stringMatching(/public\.theirs.*grant select on public\.theirs to keeper/) as string,
      });
      await inKept("drop table public.theirs");
    });

    test("a server that takes no row, such as a standby, is backed up, and the output says what is not noted", async () => {
      await inKept("alter role keeper in database kept set default_transaction_read_only = on");
      const { out, error } = await runCommand(registerBackup, ["backup", await fresh()], asOwner);
      expect(error).toBeNull();
      expect(out).toContain("backup_overdue may come although it is made");
      await inKept("alter role keeper in database kept reset default_transaction_read_only");
    });

    test("rows that row security hides are not left out in silence", async () => {
      await inKept('grant usage on schema "Shop" to keeper; alter table "Shop".seen enable row level security');
      const { error, made } = await backUpAsOwner();
      expect(error).toBeNull();
      expect(made.unreadable).toEqual([{ schema: "Shop", grant: "alter role keeper bypassrls;" }]);
    });
  });

  test("older backups go once a new one is whole, and nobody else's", async () => {
    const directory = await fresh();
    const old = ["2026-01-01", "2026-01-02"].map((day) => join(directory, `shop-${day}T00-00-00Z`));
    const { out } = await backUp(directory, "--json");
    const { folder: first } = JSON.parse(out) as { folder: string };
    const manifest = await readFile(join(first, "manifest.json"), "utf8");
    for (const each of old) {
      await mkdir(each);
      await writeFile(join(each, "manifest.json"), manifest);
    }
    await rm(first, { recursive: true });
    // Of other databases and of other programs.
    const others = ["shop2-2026-01-01T00-00-00Z", "shop-old", "notes.txt"];
    for (const name of others) await mkdir(join(directory, name));
    // Of a server elsewhere that has a database of this name, as long as it is at work and afterwards.
    const elsewhere = "shop-2026-01-04T00-00-00Z";
    others.push(elsewhere, "shop-2026-01-03T00-00-00Z.0123456789ab.partial");
    for (const name of others.slice(-2)) await mkdir(join(directory, name));
    await writeFile(
      join(directory, elsewhere, "manifest.json"),
      JSON.stringify({ ...(JSON.parse(manifest) as Manifest), system: "7" }),
    );
    const { error } = await backUp(directory, "--keep", "2");
    expect(error).toBeNull();
    const left = await readdir(directory);
    const ours = left.filter((name) => !others.includes(name)).sort();
    expect(ours).toHaveLength(2);
    expect(ours[0]).toBe("shop-2026-01-02T00-00-00Z");
    expect(left).toEqual(expect.arrayContaining(others));
  });

  test("a backup that was just made stays, where others are dated later", async () => {
    const directory = await fresh();
    const { out: before } = await backUp(directory, "--json");
    const { folder: first } = JSON.parse(before) as { folder: string };
    const later = ["2126-01-01", "2126-01-02"].map((day) => join(directory, `shop-${day}T00-00-00Z`));
    for (const each of later) await cp(first, each, { recursive: true });
    await rm(first, { recursive: true });
    const { out } = await backUp(directory, "--keep", "2", "--json");
    const made = JSON.parse(out) as { folder: string; removed: string[] };
    expect(made.removed).toEqual([later[0]]);
    expect((await readdir(directory)).map((name) => join(directory, name)).sort()).toEqual([made.folder, later[1]]);
  });

  test("what a backup that was killed has left is removed by the next one", async () => {
    const directory = await fresh();
    const programs = await programsThat("kill -9 $PPID");
    const killed = spawnSync(process.execPath, [inject("program"), "backup", directory, "--pg-bin", programs], {
      env: { PATH: process.env["PATH"], DATABASE_URL: url },
    });
    expect(killed.signal).toBe("SIGKILL");
    expect(await readdir(directory)).toEqual([expect.stringMatching(/Z\.\w+\.partial$/)]);
    const { error } = await backUp(directory);
    expect(error).toBeNull();
    expect(await readdir(directory)).toEqual([expect.stringMatching(/^shop-[\dT-]+Z$/)]);
  });

  test("a second backup of the database at the same time is refused, and the first one is whole", async () => {
    const directory = await fresh();
    const ended = await Promise.all([backUp(directory), backUp(directory)]);
    const errors = ended.flatMap(({ error }) => (error === null ? [] : [String(error)]));
    expect(errors).toEqual([expect.stringContaining("Another backup of this database is running")]);
    expect(await readdir(directory)).toHaveLength(1);
  });

  test("where nothing can be written, the message says so and nothing is left", async () => {
    const directory = await fresh();
    const file = join(directory, "file");
    await writeFile(file, "");
    const { error } = await backUp(file);
    expect(String(error)).toMatch(/No backup can be written to .*file \(ENOTDIR|EEXIST\)/);
    expect(await readdir(directory)).toEqual(["file"]);
  });

  test("a pg_dump that fails leaves nothing behind, and the older backups stay", async () => {
    const directory = await fresh();
    const programs = await programsThat("echo 'pg_dump: error: could not write: No space left on device' >&2; exit 1");
    const { error: none } = await backUp(directory);
    expect(none).toBeNull();
    const before = await readdir(directory);
    const { error } = await backUp(directory, "--keep", "1", "--pg-bin", programs);
    expect(String(error)).toMatch(/No space left on device\. The disk is full: make room/);
    expect(await readdir(directory)).toEqual(before);
  });

  describe("restoring", () => {
    const by = ["--by", "Ada"];
    const now = (): string => new Date().toISOString();
    let backup: string;
    beforeAll(async () => {
      const { out } = await backUp(await fresh(), "--json");
      backup = (JSON.parse(out) as { folder: string }).folder;
    });
    async function empty(name = `r${randomBytes(4).toString("hex")}`): Promise<{ DATABASE_URL: string }> {
      await withServer(url, (client) => client.query(`create database ${client.escapeIdentifier(name)}`));
      return { DATABASE_URL: databaseUrl(url, name) };
    }
    const restore = (env: { DATABASE_URL: string }, ...more: string[]) =>
      runCommand(registerRestore, ["restore", backup, "--ran-until", now(), ...by, ...more], {
        env,
      });
    async function isMarked({ DATABASE_URL }: { DATABASE_URL: string }): Promise<boolean> {
      const db = createDatabase({ url: DATABASE_URL, poolMax: 1, applicationName: "test" });
      try {
        return await isRestoreOpen(db);
      } finally {
        await db.destroy();
      }
    }
    const pgRestore = async (): Promise<string> => (await findClientPrograms(150_000)).pgRestore;

    test("a time in the future is refused, by which nobody would be alerted until then", async () => {
      const env = await empty();
      const nextYear = ["--ran-until", "2126-11-23T14:05:00Z", ...by];
      const { error } = await runCommand(registerRestore, ["restore", backup, ...nextYear], {
        env,
      });
      expect(error).toMatchObject({
        exitCode: 64,
        message: expect.stringContaining("never be alerted") as string,
      });
      const taken = ["--taken-at", "2026-11-01T00:00:00Z"];
      const other = await runCommand(registerRestore, ["restored", ...taken, ...nextYear], {
        env: { DATABASE_URL: url },
      });
      expect(other.error).toMatchObject({ exitCode: 64 });
    });

    test("one that ended before it noted what people were told starts nothing, until restored notes it", async () => {
      const env = await empty();
      const db = createDatabase({
        url: env.DATABASE_URL,
        poolMax: 2,
        applicationName: "tallyhook test",
      });
      const list = () => runCommand(registerAlerts, ["alerts", "list"], { env });
      try {
        const { signal } = new AbortController();
        await restoreBackup({ url: env.DATABASE_URL, db }, { folder: backup, signal });
        await migrateSchema(db);
        const { error } = await list();
        expect(await checkDatabase({ db: async () => db, parts: allParts })).toMatchObject({
          status: "failed",
        });
        expect(error).toMatchObject({
          exitCode: 2,
          message: expect.stringMatching(/restored --taken-at TIME --ran-until TIME/) as string,
        });
        expect(String((await runCommand(registerBackup, ["backup", backup], { env })).error)).toBe(String(error));
        const { takenAt } = await readManifest(backup);
        const times = ["--taken-at", takenAt, "--ran-until", now()];
        const done = await runCommand(registerRestore, ["restored", ...times, ...by], { env });
        expect(done.error).toBeNull();
        expect((await list()).error).toBeNull();
        // Once more is refused, and changes nothing.
        const again = ["restore", backup, "--ran-until", now(), ...by];
        expect((await runCommand(registerRestore, again, { env })).error).toMatchObject({
          exitCode: 64,
          message: expect.stringContaining("is not empty") as string,
        });
        expect(await db("mirror.restores").pluck("restored_by")).toEqual(["Ada"]);
        const acts = await db("people.audit").where({ action: "database.restored" }).pluck("actor");
        expect(acts).toEqual(["Ada"]);
      } finally {
        await db.destroy();
      }
    });

    test("a second one at the same time is refused, and the first one's mark stays until it is done", async () => {
      const env = await empty();
      const name = new URL(env.DATABASE_URL).pathname.slice(1);
      const set = (what: string) => withServer(url, (client) => client.query(`alter database ${name} ${what}`));
      const limitMs = 1_000;
      await set(`set idle_in_transaction_session_timeout = ${limitMs}`);
      const signs = await fresh();
      const [began, go] = [join(signs, "began"), join(signs, "go")];
      const waiting = await programsThat(
        "",
        `touch ${began}\nwhile [ ! -e ${go} ]; do sleep 0.1; done\nexec ${await pgRestore()} "$@"`,
      );
      const failing = await programsThat("", "exit 1");
      const first = restore(env, "--pg-bin", waiting);
      try {
        await eventually("pg_restore runs", () => exists(began));
        await set("reset idle_in_transaction_session_timeout");
        await sleep(limitMs + 200);
        const refused = {
          exitCode: 2,
          message: expect.stringContaining("Another restore into this database") as string,
        };
        const second = await restore(env, "--pg-bin", failing);
        expect(second.error).toMatchObject(refused);
        const times = ["--taken-at", now(), "--ran-until", now()];
        const other = await runCommand(registerRestore, ["restored", ...times, ...by], { env });
        expect(other.error).toMatchObject(refused);
        expect(await isMarked(env)).toBe(true);
      } finally {
        await writeFile(go, "");
        await first;
      }
      expect((await first).error).toBeNull();
      expect(await isMarked(env)).toBe(false);
    });

    test("one whose lock was lost ends as its work does", async () => {
      const end = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'tallyhook restore'`;
      const ended = aloneInRestore(url, async () => {
        const { rowCount } = await withServer(url, (client) => client.query(end));
        await sleep(100);
        return rowCount;
      });
      expect(await ended).toBe(1);
    });

    test("one that did not begin leaves the database as it was, without its mark", async () => {
      const env = await empty();
      const failing = await programsThat("", "echo 'pg_restore: error: no' >&2; exit 1");
      const { error } = await restore(env, "--pg-bin", failing);
      expect(String(error)).toMatch(/error: no\. The database is as empty as before\.$/);
      expect(await isMarked(env)).toBe(false);
      expect((await restore(env)).error).toBeNull();
    });

    test("one that fails keeps the mark of another one, and its own where the database has been filled", async () => {
      const env = await empty();
      const db = createDatabase({ url: env.DATABASE_URL, poolMax: 1, applicationName: "test" });
      await beginRestore(db);
      await db.destroy();
      const failing = await programsThat("", "exit 1");
      const { error } = await restore(env, "--pg-bin", failing);
      expect(String(error)).toMatch(/is empty, and marked by an earlier restore/);
      expect(await isMarked(env)).toBe(true);
      const other = await empty();
      const filling = await programsThat("", `${await pgRestore()} "$@"\nexit 1`);
      const filled = await restore(other, "--pg-bin", filling);
      expect(String(filled.error)).toMatch(/is not empty.* drop it/i);
      expect(await isMarked(other)).toBe(true);
    });

    test.each(["a=b' \\c", "postgres://x", "host=nowhere", "a%3Db"])("a database may be called %s", async (name) => {
      const env = await empty(name);
      expect((await restore(env)).error).toBeNull();
      const again = await runCommand(registerBackup, ["backup", await fresh(), "--json"], {
        env,
      });
      expect(again.error).toBeNull();
      const { manifest } = JSON.parse(again.out) as { manifest: Manifest };
      expect(manifest).toMatchObject({ database: name, rows: { "people.accounts": 1 } });
    });

    test("restored is refused while a process of the system is connected", async () => {
      const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook worker" });
      try {
        await db.raw("select 1");
        const times = ["--taken-at", now(), "--ran-until", now()];
        const { error } = await runCommand(registerRestore, ["restored", ...times, ...by], {
          env: { DATABASE_URL: url },
        });
        expect(String(error)).toMatch(/"tallyhook worker" is connected .* Stop all processes/);
      } finally {
        await db.destroy();
      }
    });

    test("a later backup beside it names who was erased, and one that cannot be read is named", async () => {
      const manifest = await readManifest(backup);
      const beside = await fresh();
      const add = async (name: string, text: string): Promise<void> => {
        await mkdir(join(beside, name));
        await writeFile(join(beside, name, "manifest.json"), text);
      };
      await add("later", JSON.stringify({ ...manifest, erased: ["erased"] }));
      await add("of another database", JSON.stringify({ ...manifest, database: "other", erased: ["x"] }));
      await add("cut", JSON.stringify(manifest).slice(0, 40));
      await mkdir(join(beside, "no backup"));
      await writeFile(join(beside, "notes.txt"), "");
      expect(await erasedByLaterBackups(join(beside, "this"), manifest)).toEqual({
        erased: ["erased"],
        unread: ["cut"],
      });
    });

    test("a manifest that never ends is refused", async () => {
      const folder = await fresh();
      await symlink("/dev/zero", join(folder, "manifest.json"));
      await expect(readManifest(folder)).rejects.toThrow("is not a manifest");
    });
  });
});
