import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import type { Knex } from "knex";
import { inject } from "vitest";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { databaseUrl, withServer } from "./server-commands.ts";

/**
 * Dumps of the database of each released version. In that of 0.1.0 a sandbox's month of traffic was mirrored, a month
 * closed, a person erased, a row spoiled by hand and found; that of 0.2.0 is the same after its `migrate`.
 */
const dumps = {
  "0.1.0": new URL("../migrations/version-0.1.sql.gz", import.meta.url),
  "0.2.0": new URL("../migrations/version-0.2.sql.gz", import.meta.url),
};

export type ReleasedVersion = keyof typeof dumps;
export const releasedVersions = Object.keys(dumps) as ReleasedVersion[];

export interface ReleasedDatabase {
  url: string;
  db: Knex;
  destroy(): Promise<void>;
}

/** A database as that version left it. */
export async function createReleasedDatabase(
  version: ReleasedVersion,
  server: string = inject("serverUrl"),
): Promise<ReleasedDatabase> {
  const name = `${inject("templateDatabase")}_${randomBytes(4).toString("hex")}`;
  await withServer(server, (client) => client.query(`create database ${name} template template0`));
  const url = databaseUrl(server, name);
  const dump = gunzipSync(await readFile(dumps[version])).toString();
  await withServer(url, (client) => client.query(dump.replace("CREATE SCHEMA public;", "")));
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
  return {
    url,
    db,
    async destroy() {
      await db.destroy();
      await withServer(server, (client) => client.query(`drop database ${name} with (force)`));
    },
  };
}
