import { readFile, readdir } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import type { Knex } from "knex";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { type RehearsalOptions, rehearse } from "../../../../src/main/cli/upgrade/rehearse.ts";
import { createLog } from "../../../../src/platform/log.ts";
import { createDatabase } from "../../../../src/platform/postgres/pool.ts";
import { makeDataDir } from "../../../support/data-directory.ts";
import { databaseUrl, withServer } from "../../../support/server-commands.ts";

const folder = new URL("../../../migrations/", import.meta.url);
const name = `${inject("templateDatabase")}_rehearsed`;
let source: Knex;
let dataDir: string;

/** A database of version 0.1, with a closed month and what it rests on. */
beforeAll(async () => {
  const server = inject("serverUrl");
  await withServer(server, (client) => client.query(`create database ${name} template template0`));
  const dump = gunzipSync(await readFile(new URL("version-0.1.sql.gz", folder))).toString();
  await withServer(databaseUrl(server, name), (client) =>
    client.query(dump.replace("CREATE SCHEMA public;", "")),
  );
  source = createDatabase({ url: databaseUrl(server, name), poolMax: 2, applicationName: "test" });
  dataDir = await makeDataDir();
});
afterAll(async () => {
  await source.destroy();
  await withServer(inject("serverUrl"), (client) => client.query(`drop database ${name}`));
});

const log = createLog({ level: "silent", name: "test" });
const run = (options: Partial<RehearsalOptions> = {}) =>
  rehearse(
    { source, dataDir, log },
    { rows: 100_000, say: () => {}, signal: new AbortController().signal, ...options },
  );

test("a rehearsal migrates a copy, times its locks, compares closed months, and leaves no trace", async () => {
  // As if this version had changed what the report says of a closed month.
  await source.raw(
    "do $$ begin execute replace(pg_get_functiondef('reports.refunds'::regproc), 'abs(r.amount)', 'abs(r.amount) + 1'); end $$",
  );
  const said: string[] = [];
  const { applied, tables, locks, steps, closes, gaps } = await run({
    say: (line) => said.push(line),
  });
  expect(applied.slice(0, 2)).toEqual(["0007_useless_answers", "0008_inbox_seen"]);
  expect(gaps).toEqual([]);
  expect(tables.filter(({ copied, real }) => copied !== real)).toEqual([]);
  const versions = await source("mirror.versions").count<{ count: string }[]>();
  expect(tables.find(({ table }) => table === "mirror.versions")?.copied).toBe(
    Number(versions[0]?.count),
  );
  expect(steps[0]).toMatchObject({
    file: "migrations/0007_useless_answers.sql",
    statement: "alter table inbox.fetches add column useless_answers integer not …",
  });
  expect(locks.find(({ table }) => table === "inbox.fetches")).toMatchObject({
    stopsReaders: true,
  });
  expect(closes).toEqual({
    sealed: ["2026-10"],
    sealOnly: [],
    same: 14,
    problems: [
      "The report 2026-10 refunds of a closed month says something else after the upgrade.",
    ],
  });
  expect(said[0]).toMatch(/only its server's user can read, and is removed at the end/);
  expect(await source.schema.withSchema("inbox").hasColumn("fetches", "useless_answers")).toBe(
    false,
  );
  expect(await readdir(dataDir)).toEqual([]);
});

test("a rehearsal that is stopped removes its copy", async () => {
  const stop = new AbortController();
  const stopped = run({ signal: stop.signal, say: () => stop.abort(new Error("Ctrl-C")) });
  await expect(stopped).rejects.toThrow("Ctrl-C");
  expect(await readdir(dataDir)).toEqual([]);
});
