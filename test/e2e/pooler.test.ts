import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrateQueueSchema } from "../../src/queue/backend.ts";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { assertReachable } from "../../src/platform/postgres/pool.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { type PgBouncer, pgbouncerInstalled, startPgBouncer } from "../support/pgbouncer.ts";
import { withServer } from "../support/server-commands.ts";
import { audit, faultless } from "./audit.ts";
import { layOutDeployment, webhookSecret } from "./deployment.ts";
import { createHistory } from "./history.ts";
import { storedAreSettled } from "./inbox-progress.ts";
import { killPrograms } from "./program.ts";
import { startSender } from "./sender.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 });
  await migrateQueueSchema(database.url);
});
afterAll(() => database.destroy());

/** A pooler, once what the message of the refused start says is done for the role. */
async function startSettled(mode: "session" | "transaction"): Promise<PgBouncer> {
  const first = await startPgBouncer(database.url, mode);
  const message = await assertReachable(first.url).catch((error: unknown) => String(error));
  await first.stop();
  const statements = String(message).split("\n").slice(1);
  await withServer(database.url, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
  return startPgBouncer(database.url, mode);
}

describe.runIf(pgbouncerInstalled)("behind PgBouncer", () => {
  test("events are acknowledged and applied in its session mode, with the settings of the role", async () => {
    const pooler = await startSettled("session");
    try {
      const history = createHistory(seededRandom("pooler"));
      const deployment = await layOutDeployment({ databaseUrl: pooler.url });
      const programs = [await deployment.startReceiver(), await deployment.startWorker()];
      const sender = startSender(
        { history, random: seededRandom("pooler") },
        { url: deployment.webhooksUrl, secret: webhookSecret, eventsPerSecond: 50 },
      );
      await sender.whenAcknowledged(200);
      await sender.finish();
      await storedAreSettled(database.db);
      expect(await audit(database.db, sender.acknowledged, history.model)).toEqual(faultless);
      for (const program of programs) {
        expect(program.output()).not.toContain('"level":"error"');
        await program.stop();
      }
    } finally {
      await killPrograms();
      await pooler.stop();
    }
  }, 120_000);

  test("its transaction mode stops every start, with what to set", async () => {
    const pooler = await startSettled("transaction");
    try {
      const refused = assertReachable(pooler.url);
      await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
      await expect(refused).rejects.toThrow("PgBouncer: pool_mode = session");
    } finally {
      await pooler.stop();
    }
  });
});
