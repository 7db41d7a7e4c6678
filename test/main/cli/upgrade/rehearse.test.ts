import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registerBackup } from "../../../../src/main/cli/backup/backup.ts";
import { type Rehearsal, type RehearsalOptions, rehearse } from "../../../../src/main/cli/upgrade/rehearse.ts";
import { registerUpgrade } from "../../../../src/main/cli/upgrade/upgrade.ts";
import { createLog } from "../../../../src/platform/log.ts";
import { createDatabase } from "../../../../src/platform/postgres/pool.ts";
import { runCommand } from "../command-line.ts";
import { makeDataDir } from "../../../support/data-directory.ts";
import { type PlainServer, debianPostgresInstalled, startDebianServer } from "../../../support/debian-postgres.ts";
import { type ReleasedDatabase, createReleasedDatabase } from "../../../support/released-database.ts";
import { reports } from "../../../../src/parts/reports/part.ts";
import type { Runtime } from "../../../../src/app/runtime.ts";

/** A database of version 0.2, with a closed month and what it rests on, on a server whose pg_dump is there. */
describe.runIf(debianPostgresInstalled)("a rehearsal", () => {
  let server: PlainServer;
  let released: ReleasedDatabase;
  let source: Knex;
  let dataDir: string;

  beforeAll(async () => {
    server = await startDebianServer();
    released = await createReleasedDatabase("0.2.0", server.url);
    source = released.db;
    dataDir = await makeDataDir();
  });
  afterAll(async () => {
    await released.destroy();
    await server.destroy();
  });

  const log = createLog({ level: "silent", name: "test" });
  const closedMonths = reports.answers!({} as Runtime).closedMonths!;
  const run = (options: Partial<RehearsalOptions> = {}, db = source) =>
    rehearse(
      { source: db, url: released.url, dataDir, log, ask: { closedMonths } },
      { version: "0.3.0", say: () => {}, signal: new AbortController().signal, ...options },
    );

  test("migrates a copy, times its locks, compares closed months, and leaves no trace", async () => {
    // As if this version had changed what the report says of a closed month, and the database had lost one.
    await source.raw("drop function reports.mrr");
    await source.raw(
      "do $$ begin execute replace(pg_get_functiondef('reports.refunds'::regproc), 'abs(r.amount)', 'abs(r.amount) + 1'); end $$",
    );
    const said: string[] = [];
    const { applied, rows, locks, steps, closes, gaps } = await run({
      say: (line) => said.push(line),
    });
    expect(applied.slice(0, 2)).toEqual(["0007_useless_answers", "0008_inbox_seen"]);
    expect(gaps).toEqual(["The report 2026-10 mrr of a closed month is not compared: the database does not have it."]);
    const versions = await source("mirror.versions").count<{ count: string }[]>();
    expect(rows["mirror.versions"]).toBe(Number(versions[0]?.count));
    expect(steps[0]).toMatchObject({
      file: "migrations/0007_useless_answers.sql",
      statement: "alter table inbox.fetches add column useless_answers integer not …",
    });
    expect(locks.find(({ table }) => table === "inbox.fetches")).toMatchObject({
      stopsReaders: true,
    });
    expect(closes).toEqual({
      sealed: ["2026-10"],
      // With the two others, all fifteen.
      same: 13,
      problems: ["The report 2026-10 refunds of a closed month says something else after the upgrade."],
    });
    expect(said[0]).toMatch(/only its server's user can read, and is removed at the end/);
    expect(await source.schema.withSchema("inbox").hasColumn("fetches", "useless_answers")).toBe(false);
    expect(await readdir(dataDir)).toEqual([]);
  });

  test("restores a backup that is named, reads it alone, and names what the copy's server cannot have", async () => {
    const { url, db, destroy } = await createReleasedDatabase("0.1.0", server.url);
    // The copy's server has no roles.
    await db.raw(
      `create role theirs; create schema theirs; create table theirs.rows as select 1 as n;
       create policy theirs on theirs.rows to theirs`,
    );
    const env = { DATABASE_URL: url, TALLYHOOK_DATA_DIR: dataDir };
    const backups = join(dataDir, "backups");
    await mkdir(backups);
    const made = await runCommand(registerBackup, ["backup", backups, "--json"], { env });
    const { folder } = JSON.parse(made.out) as { folder: string };
    await db.raw("drop schema theirs cascade");
    const args = ["upgrade", "--rehearse", "--backup", folder, "--json"];
    const ran = await runCommand(registerUpgrade, args, { env });
    expect(ran).toMatchObject({ error: null, exitCode: null });
    const { applied, rows, closes, gaps } = JSON.parse(ran.out) as Rehearsal;
    expect(applied[0]).toBe("0007_useless_answers");
    expect(rows["theirs.rows"]).toBe(1);
    expect({ closes, gaps }).toEqual({
      closes: { sealed: ["2026-10"], same: 15, problems: [] },
      gaps: [expect.stringMatching(/^Not in the copy: .* role "theirs" does not exist\.$/)],
    });
    expect(await readdir(dataDir)).toEqual(["backups"]);
    await destroy();
  });

  test("outlives what role and database set against long transactions", async () => {
    const { pathname } = new URL(released.url);
    const names = ["statement_timeout", "idle_in_transaction_session_timeout"];
    for (const name of names) {
      await source.raw(`alter database ${pathname.slice(1)} set ${name} = '300ms'`);
    }
    const db = createDatabase({ url: released.url, poolMax: 2, applicationName: "tallyhook test" });
    const begunMs = performance.now();
    expect((await run({}, db)).applied.length).toBeGreaterThan(0);
    expect(performance.now() - begunMs).toBeGreaterThan(300);
    await db.destroy();
    for (const name of names) {
      await source.raw(`alter database ${pathname.slice(1)} reset ${name}`);
    }
  });

  test("that is stopped removes its copy", async () => {
    const before = await readdir(dataDir);
    const stop = new AbortController();
    const stopped = run({ signal: stop.signal, say: () => stop.abort(new Error("Ctrl-C")) });
    await expect(stopped).rejects.toThrow("Ctrl-C");
    expect(await readdir(dataDir)).toEqual(before);
  });
});
