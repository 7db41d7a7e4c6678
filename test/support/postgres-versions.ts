import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { migrateSchema } from "../../src/main/schema.ts";
import { installBinaries } from "../../src/platform/embedded/cluster.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { createTestDatabase } from "./database.ts";
import { type PlainServer, debianPostgresInstalled, startDebianServer, startPlainServer } from "./debian-postgres.ts";
import { projectRoot } from "./project-root.ts";
import { databaseUrl, withServer } from "./server-commands.ts";

/** The folder where `.ci/run` puts npm's packages of other versions, as `postgres-16`. */
const packages = join(projectRoot, ".data", "postgres", "node_modules");

/** A migrated database on each version of PostgreSQL that is here: the run's own, Debian's, and npm's packages. */
export const migratedOnEachVersion: readonly [string, () => Promise<PlainServer>][] = [
  ["the embedded server", () => createTestDatabase({ poolMax: 1 })],
  ...(debianPostgresInstalled ? [["Debian's server", () => migrated(startDebianServer())] satisfies Version] : []),
  ...(existsSync(packages) ? readdirSync(packages) : [])
    .filter((name) => /^postgres-\d+$/.test(name))
    .map((name): Version => {
      const programsIn = async (directory: string) =>
        dirname((await installBinaries(directory, join(packages, name))).postgres);
      return [name, () => migrated(startPlainServer(programsIn))];
    }),
];

type Version = [string, () => Promise<PlainServer>];

async function migrated(starting: Promise<PlainServer>): Promise<PlainServer> {
  const server = await starting;
  await withServer(server.url, (client) => client.query("create database limits"));
  const url = databaseUrl(server.url, "limits");
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
  await migrateSchema(db);
  await db.destroy();
  return { ...server, url };
}
