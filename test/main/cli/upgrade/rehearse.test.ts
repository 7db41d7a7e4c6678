import { readdir } from "node:fs/promises";
import type { Knex } from "knex";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Rehearsal,
  type RehearsalOptions,
  rehearse,
} from "../../../../src/main/cli/upgrade/rehearse.ts";
import { registerUpgrade } from "../../../../src/main/cli/upgrade/upgrade.ts";
import { createLog } from "../../../../src/platform/log.ts";
import { createDatabase } from "../../../../src/platform/postgres/pool.ts";
import { runCommand } from "../command-line.ts";
import { makeDataDir } from "../../../support/data-directory.ts";
import {
  type ReleasedDatabase,
  createReleasedDatabase,
} from "../../../support/released-database.ts";

let released: ReleasedDatabase;
let source: Knex;
let dataDir: string;

/** A database of version 0.2, with a closed month and what it rests on. */
beforeAll(async () => {
  released = await createReleasedDatabase("0.2.0");
  source = released.db;
  dataDir = await makeDataDir();
});
afterAll(() => released.destroy());

const log = createLog({ level: "silent", name: "test" });
const run = (options: Partial<RehearsalOptions> = {}) =>
  rehearse(
    { source, dataDir, log },
    { rows: 100_000, say: () => {}, signal: new AbortController().signal, ...options },
  );

test("a rehearsal migrates a copy, times its locks, compares closed months, and leaves no trace", async () => {
  // As if this version had changed what the report says of a closed month, and the database had lost one.
  await source.raw("drop function reports.mrr");
  await source.raw(
    "do $$ begin execute replace(pg_get_functiondef('reports.refunds'::regproc), 'abs(r.amount)', 'abs(r.amount) + 1'); end $$",
  );
  const said: string[] = [];
  const { applied, tables, locks, steps, closes, gaps } = await run({
    say: (line) => said.push(line),
  });
  expect(applied.slice(0, 2)).toEqual(["0007_useless_answers", "0008_inbox_seen"]);
  expect(gaps).toEqual([
    "The report 2026-10 mrr of a closed month is not compared: the database does not have it.",
  ]);
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
    // With the two others, all fifteen.
    same: 13,
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

test("a database of version 0.1.0 is rehearsed, and none of its closed reports changes or is left out", async () => {
  const { url, destroy } = await createReleasedDatabase("0.1.0");
  const env = { DATABASE_URL: url, TALLYHOOK_DATA_DIR: dataDir };
  const ran = await runCommand(registerUpgrade, ["upgrade", "--rehearse", "--json"], { env });
  expect(ran).toMatchObject({ error: null, exitCode: null });
  const { applied, closes, gaps } = JSON.parse(ran.out) as Rehearsal;
  expect(applied[0]).toBe("0007_useless_answers");
  expect({ closes, gaps }).toEqual({
    closes: { sealed: ["2026-10"], sealOnly: [], same: 15, problems: [] },
    gaps: [],
  });
  await destroy();
});

test("a rehearsal outlives what role and database set against long transactions", async () => {
  const { pathname } = new URL(released.url);
  const names = ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"];
  for (const name of names) {
    await source.raw(`alter database ${pathname.slice(1)} set ${name} = '300ms'`);
  }
  const db = createDatabase({ url: released.url, poolMax: 2, applicationName: "tallyhook test" });
  const begunMs = performance.now();
  const rehearsal = rehearse(
    { source: db, dataDir, log },
    {
      rows: 100_000,
      say: () => {},
      signal: new AbortController().signal,
    },
  );
  expect((await rehearsal).applied.length).toBeGreaterThan(0);
  expect(performance.now() - begunMs).toBeGreaterThan(300);
  await db.destroy();
  for (const name of names) {
    await source.raw(`alter database ${pathname.slice(1)} reset ${name}`);
  }
});

test("a rehearsal that is stopped removes its copy", async () => {
  const stop = new AbortController();
  const stopped = run({ signal: stop.signal, say: () => stop.abort(new Error("Ctrl-C")) });
  await expect(stopped).rejects.toThrow("Ctrl-C");
  expect(await readdir(dataDir)).toEqual([]);
});
