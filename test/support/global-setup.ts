import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { startEmbeddedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";
import { migrateSchema } from "../../src/main/schema.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { assertReachable } from "../../src/platform/postgres/reachable.ts";
import { makeDataDir } from "./data-directory.ts";
import { databaseUrl, withServer } from "./server-commands.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The server of this run, at a database from which others can be made. */
    serverUrl: string;
    /** A migrated database to clone; also the prefix of the names of the clones. */
    templateDatabase: string;
    /** Whether this is `npm run torture`, which runs the everyday tests' samples in full. */
    isTorture: boolean;
    /** Whether this is `npm run test:long`, which tries the properties of `longerTests` with many cases. */
    isLong: boolean;
    /** Whether it is the short form of `npm run torture -- scale`, which CI runs. */
    isShort: boolean;
  }
}

/** One server and one migrated template for the whole run; TEST_DATABASE_URL names a server to use instead. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await testServer(process.env["TEST_DATABASE_URL"]);
  const templateDatabase = `tallyhook_test_${randomBytes(4).toString("hex")}`;
  try {
    await withServer(server.url, async (client) => {
      if (server.isOurs) await makeLoginCheap(client, new URL(server.url));
      await client.query(`CREATE DATABASE ${templateDatabase}`);
    });
    await migrateTemplate(databaseUrl(server.url, templateDatabase));
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide("serverUrl", server.url);
  project.provide("templateDatabase", templateDatabase);
  return async () => {
    await dropAll(server.url, templateDatabase);
    await server.stop();
  };
}

async function testServer(given: string | undefined): Promise<{ url: string; isOurs: boolean; stop(): Promise<void> }> {
  if (given !== undefined) {
    await assertReachable(given, { variable: "TEST_DATABASE_URL" });
    return { url: given, isOurs: false, stop: async () => {} };
  }
  const dataDir = await makeDataDir();
  const server = await startEmbeddedPostgres({
    dataDir,
    log: createLog({ level: "silent", name: "test" }),
    database: "postgres",
    // Speed: the run's data is worthless after a crash.
    settings: {
      fsync: "off",
      full_page_writes: "off",
      synchronous_commit: "off",
      max_connections: "300",
    },
  });
  return {
    url: server.url,
    isOurs: true,
    async stop() {
      await server.remove();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A login hashes the password as often as it was hashed when it was set: 4,096 times are a fifth of a connection. */
async function makeLoginCheap(client: pg.Client, { username, password }: URL): Promise<void> {
  await client.query("SET scram_iterations = 1");
  await client.query(`ALTER ROLE ${pg.escapeIdentifier(username)} PASSWORD ${pg.escapeLiteral(password)}`);
}

async function migrateTemplate(url: string): Promise<void> {
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test template" });
  try {
    await migrateSchema(db);
  } finally {
    await db.destroy();
  }
}

/** Drops databases that a test file left behind, and the template. */
async function dropAll(serverUrl: string, templateDatabase: string): Promise<void> {
  await withServer(serverUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
      [templateDatabase],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE "${datname}" WITH (FORCE)`);
  });
}
