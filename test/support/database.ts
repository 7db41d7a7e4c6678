import { randomBytes } from "node:crypto";
import type { Knex } from "knex";
import { inject } from "vitest";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { testPooling } from "./pooling.ts";
import { cloneDatabase, databaseUrl, onServer } from "./server-commands.ts";

export interface TestDatabase {
  /** Through the run's pooler, where it has one. */
  url: string;
  /** Past it. */
  directUrl: string;
  /** The settings by which a program reaches it. */
  environment: Readonly<Record<string, string>>;
  db: Knex;
  /** Closes `db` and drops the database, even with other connections open. */
  destroy(): Promise<void>;
}

/**
 * A migrated database of one's own, cloned from the run's template. Make one in `beforeAll`, destroy it in
 * `afterAll`. The server runs without fsync; tests that kill a server take one of `own-server.ts`.
 */
export async function createTestDatabase({
  poolMax = 5,
  template = inject("templateDatabase"),
}: { poolMax?: number; template?: string } = {}): Promise<TestDatabase> {
  const serverUrl = inject("serverUrl");
  const name = `${inject("templateDatabase")}_${randomBytes(4).toString("hex")}`;
  await cloneDatabase(serverUrl, name, template);
  const directUrl = databaseUrl(serverUrl, name);
  const url = databaseUrl(inject("poolerUrl") ?? serverUrl, name);
  const options = { poolMax, applicationName: "tallyhook test" };
  const db = createDatabase({ url, pooling: testPooling(), ...options });
  return {
    url,
    directUrl,
    environment: {
      DATABASE_URL: url,
      ...(url === directUrl ? {} : { DATABASE_DIRECT_URL: directUrl }),
    },
    db,
    async destroy() {
      await db.destroy();
      await onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}
