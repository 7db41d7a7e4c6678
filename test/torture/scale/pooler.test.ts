import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { migrateQueueSchema } from "../../../src/core/queue/backend.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { audit, faultless } from "../../e2e/audit.ts";
import { layOutDeployment, webhookSecret } from "../../e2e/deployment.ts";
import { createHistory } from "../../e2e/history.ts";
import { storedAreSettled } from "../../e2e/inbox-progress.ts";
import { killPrograms } from "../../e2e/program.ts";
import { startSender } from "../../e2e/sender.ts";
import { createTestDatabase } from "../../support/database.ts";
import { type PgBouncer, pgbouncerInstalled, startPgBouncer } from "../../support/pgbouncer.ts";
import { withServer } from "../../support/server-commands.ts";

afterEach(killPrograms);

/** What may befall a pooler and its server. Each ends with the pooler as it was. */
const faults: Readonly<Record<string, (pooler: PgBouncer, serverUrl: string) => Promise<void>>> = {
  "its server connections are ended": async (_pooler, serverUrl) => {
    await withServer(serverUrl, (client) =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'tallyhook queue'`,
      ),
    );
  },
  "it reconnects": (pooler) => pooler.command("reconnect"),
  "it pauses for a moment": async (pooler) => {
    await pooler.command("pause");
    await sleep(500);
    await pooler.command("resume");
  },
  "it pauses for longer than clients may wait": async (pooler) => {
    await pooler.change({ query_wait_timeout: 1 });
    await pooler.command("pause");
    await sleep(2_500);
    await pooler.command("resume");
    await pooler.change({ query_wait_timeout: 120 });
  },
  "it pools by session, and by transaction again": async (pooler) => {
    await pooler.change({ pool_mode: "session" });
    await sleep(500);
    await pooler.change({ pool_mode: "transaction" });
  },
  "it pools by statement, and by transaction again": async (pooler) => {
    await pooler.change({ pool_mode: "statement" });
    await sleep(500);
    await pooler.change({ pool_mode: "transaction" });
  },
  "it takes no further clients, and reconnects": async (pooler, serverUrl) => {
    await pooler.change({ max_client_conn: 2 });
    await faults["its server connections are ended"]?.(pooler, serverUrl);
    await sleep(500);
    // The console counts as a client as well, so this may have to wait for a place.
    await pooler.change({ max_client_conn: 300 });
  },
};

describe.runIf(pgbouncerInstalled)("what befalls a pooler in transaction mode", () => {
  test("under load costs no acknowledged event, and is counted as no event's attempt", async () => {
    const database = await createTestDatabase();
    await migrateQueueSchema(database.url);
    const pooler = await startPgBouncer(database.url, "transaction", { default_pool_size: 6 });
    try {
      const deployment = await layOutDeployment({
        databaseUrl: pooler.url,
        databaseDirectUrl: database.url,
      });
      await deployment.startReceiver();
      await deployment.startWorker();
      const history = createHistory(seededRandom("pooler"));
      const sender = startSender(
        { history, random: seededRandom("pooler") },
        { url: deployment.webhooksUrl, secret: webhookSecret, eventsPerSecond: 100 },
      );
      await sender.whenAcknowledged(50);
      for (let round = 0; round < 2; round++) {
        for (const [what, happen] of Object.entries(faults)) {
          const before = { ...sender.counts };
          await happen(pooler, database.url);
          await sender.whenAcknowledged(100, 60_000);
          const refused = sender.counts.refused503 - before.refused503;
          console.log(`${what}: ${refused} answers 503`);
        }
      }
      await sender.finish(60_000);
      await storedAreSettled(database.db, 120_000);
      expect(await audit(database.db, sender.acknowledged, history.model)).toEqual(faultless);
      console.log(`${sender.acknowledged.size} events acknowledged, each applied at its first attempt`);
    } finally {
      await killPrograms();
      await pooler.stop();
      await database.destroy();
    }
  });
});
