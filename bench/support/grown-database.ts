import { createHash } from "node:crypto";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";
import { cloneDatabase, databaseUrl, withServer } from "../../test/support/server-commands.ts";
import { fillYear } from "./fill-year.ts";
import { fillGrownInbox } from "./grown-inbox.ts";
import { migrate } from "./migrate.ts";
import { benchDirectory, projectRoot } from "./places.ts";

/** Row counts of a grown database. */
export interface Grown {
  orders: number;
  events: number;
}

export interface GrownServer {
  postgres: EmbeddedPostgres;
  /** A copy of the grown database, and an empty one with the same tables. */
  grownUrl: string;
  emptyUrl: string;
  /** Drops both and stops the server; the grown database itself stays for the next run. */
  close(): Promise<void>;
}

/** Kept after a run, unlike the directories of runs. */
const directory = join(benchDirectory, "grown");
/** A server that is killed while it fills only loses a database that can be made again. */
const fillSettings = {
  fsync: "off",
  full_page_writes: "off",
  autovacuum: "off",
  shared_buffers: "2GB",
  max_wal_size: "8GB",
};
const unfinished = "filling";
const [copy, empty] = ["grown_copy", "empty"];

/**
 * A server with a grown database, on the settings of the embedded one and `settings`. The grown database is made where
 * there is none of this size and this schema, which takes minutes and 13 GB for a million orders; the copy that a run
 * changes takes as much again.
 */
export async function openGrown(
  grown: Grown,
  settings: Readonly<Record<string, string>>,
  say: (line: string) => void,
): Promise<GrownServer> {
  await mkdir(directory, { recursive: true });
  const template = `grown_${await fingerprint(grown)}`;
  let postgres = await start(settings);
  if (!(await databases(postgres.url)).includes(template)) {
    await postgres.stop();
    await makeTemplate(template, grown, say);
    postgres = await start(settings);
  }
  try {
    for (const name of [copy, empty]) await drop(postgres.url, name);
    say("copying the grown database");
    await cloneDatabase(postgres.url, copy, template);
    await withServer(postgres.url, (client) => client.query(`create database ${empty}`));
    const [grownUrl, emptyUrl] = [copy, empty].map((name) => databaseUrl(postgres.url, name));
    if (grownUrl === undefined || emptyUrl === undefined) throw new Error("no database was made");
    // The template keeps the functions of the day on which it was made.
    for (const url of [emptyUrl, grownUrl]) await migrate(url);
    return {
      postgres,
      grownUrl,
      emptyUrl,
      async close() {
        for (const name of [copy, empty]) await drop(postgres.url, name);
        await postgres.stop();
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

const start = (settings: Readonly<Record<string, string>>): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({
    dataDir: directory,
    log: createLog({ level: "silent", name: "bench" }),
    settings,
  });

async function makeTemplate(template: string, grown: Grown, say: (line: string) => void): Promise<void> {
  const startMs = performance.now();
  const sayTime = (line: string) => say(`${((performance.now() - startMs) / 1000).toFixed(0)} s: ${line}`);
  say(`making a database of ${grown.orders} orders and ${grown.events} events, once`);
  const postgres = await start(fillSettings);
  try {
    // Of another schema or another size, or half made.
    for (const name of await databases(postgres.url)) {
      if (name.startsWith("grown_") || name === unfinished) await drop(postgres.url, name);
    }
    await withServer(postgres.url, (client) => client.query(`create database ${unfinished}`));
    const url = databaseUrl(postgres.url, unfinished);
    await migrate(url);
    await Promise.all([
      withServer(url, (client) => fillYear(client, grown.orders, sayTime)),
      withServer(url, (client) => fillGrownInbox(client, grown)).then(() => sayTime("inbox")),
    ]);
    await withServer(postgres.url, async (client) => {
      await client.query(`alter database ${unfinished} rename to ${template}`);
      await client.query("checkpoint");
    });
  } finally {
    await postgres.stop();
  }
}

async function databases(url: string): Promise<string[]> {
  return withServer(url, async (client) => {
    const { rows } = await client.query<{ datname: string }>("select datname from pg_database");
    return rows.map(({ datname }) => datname);
  });
}

const drop = (url: string, name: string): Promise<unknown> =>
  withServer(url, (client) => client.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`));

/** Identifies the sources of a grown database: the migrations, the fill and the size. */
async function fingerprint(grown: Grown): Promise<string> {
  const migrations = join(projectRoot, "migrations");
  const files = (await readdir(migrations)).filter((name) => name.endsWith(".sql")).sort();
  const fill = ["bulk-load.ts", "fill-year.ts", "grown-inbox.ts", "year.ts"];
  const paths = [
    ...files.map((name) => join(migrations, name)),
    ...fill.map((name) => join(projectRoot, "bench", "support", name)),
  ];
  const hash = createHash("sha256").update(JSON.stringify(grown));
  for (const path of paths) hash.update(await readFile(path));
  return hash.digest("hex").slice(0, 12);
}
