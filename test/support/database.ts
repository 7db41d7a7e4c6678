import { randomBytes } from "node:crypto";
import type { Knex } from "knex";
import { inject } from "vitest";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { cloneDatabase, databaseUrl, withServer } from "./server-commands.ts";

export interface TestDatabase {
  url: string;
  db: Knex;
  /** Closes `db` and drops the database, whoever else is still connected. */
  destroy(): Promise<void>;
}

/**
 * A migrated database of one's own, cloned from the run's template. Make one in `beforeAll`, destroy it in
 * `afterAll`. The server runs without fsync; tests that kill a server take one of `own-server.ts`.
 */
export async function createTestDatabase({ poolMax = 5 } = {}): Promise<TestDatabase> {
  const serverUrl = inject("serverUrl");
  const template = inject("templateDatabase");
  const name = `${template}_${randomBytes(4).toString("hex")}`;
  await cloneDatabase(serverUrl, name, template);
  const url = databaseUrl(serverUrl, name);
  const db = createDatabase({ url, poolMax, applicationName: "tallyhook test" });
  return {
    url,
    db,
    async destroy() {
      await db.destroy();
      await withServer(serverUrl, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
    },
  };
}
