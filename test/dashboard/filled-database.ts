import { inject } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { cloneDatabase, withServer } from "../support/server-commands.ts";
import { useDatabase } from "../support/use-database.ts";
import { fillDatabase, filledClock } from "./fill-database.ts";

/** A database in which a merchant's weeks have left their traces, and the service that they happened at. */
export interface FilledDatabase extends TestDatabase {
  service: { baseUrl: string; apiKey: string };
  /** The service itself, for a test that makes more happen. */
  sandbox: TestSandbox;
}

/** For the tests of a file. It is filled once a run; each file gets a copy of its own. */
export const useFilledDatabase = (): FilledDatabase => useDatabase(openFilled);

/** A copy of one's own. Its destroyer closes the service as well. */
export async function openFilled(): Promise<FilledDatabase> {
  const database = await createTestDatabase({ template: await filledTemplate() });
  const sandbox = await startTestSandbox("dashboard", { wallClock: filledClock });
  const kept = await database.db("stand.sandbox").first<{ state: Json }>("state");
  await sandbox.control("PUT", "/snapshot", { state: kept.state });
  return {
    ...database,
    sandbox,
    service: { baseUrl: sandbox.url, apiKey: testKey },
    async destroy() {
      await sandbox.close();
      await database.destroy();
    },
  };
}

/** The database to copy: the first file of the run that needs it makes it, and the others wait. */
async function filledTemplate(): Promise<string> {
  const serverUrl = inject("serverUrl");
  const name = `${inject("templateDatabase")}_filled`;
  await withServer(serverUrl, async (client) => {
    await client.query("select pg_advisory_lock(hashtext($1))", [name]);
    const { rowCount } = await client.query("select from pg_database where datname = $1", [name]);
    if (rowCount === 1) return;
    const first = await createTestDatabase();
    try {
      await fillDatabase(first.db);
      await first.db.destroy();
      await cloneDatabase(serverUrl, name, new URL(first.directUrl).pathname.slice(1));
    } finally {
      await first.destroy();
    }
  });
  return name;
}
