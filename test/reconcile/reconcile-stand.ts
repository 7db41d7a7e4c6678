import { createServiceClock, wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { reconcile } from "../../src/reconcile/reconcile.ts";
import type { ReconcileResult } from "../../src/reconcile/finish.ts";
import type { ReconcileDeps, ReconcileRequest } from "../../src/reconcile/reconcile.ts";
import { defaultReconcileSettings } from "../../src/reconcile/settings.ts";
import type { ReconcileSettings } from "../../src/reconcile/settings.ts";
import { testKey } from "../../src/sandbox/keys.ts";
import { createServiceClient } from "../../src/service/client.ts";
import { createTestDatabase } from "../support/database.ts";
import type { TestDatabase } from "../support/database.ts";

export interface ReconcileStand {
  database: TestDatabase;
  deps: ReconcileDeps;
  logged(): string;
  run(request?: ReconcileRequest, settings?: Partial<ReconcileSettings>): Promise<ReconcileResult>;
  close(): Promise<void>;
}

/** A database of its own and a client of the service at `baseUrl`. Without a grace, unless told. */
export async function createReconcileStand(baseUrl: string): Promise<ReconcileStand> {
  const database = await createTestDatabase();
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({ level: "debug", name: "test", destination });
  const serviceClock = createServiceClock(wallClock);
  const random = seededRandom("reconcile");
  const client = createServiceClient(
    { baseUrl, apiKey: testKey, log, wallClock, serviceClock, random },
    { retry: { maxAttempts: 4, baseDelayMs: 5, maxDelayMs: 20 } },
  );
  const deps = { db: database.db, client, log, random, clock: wallClock, serviceClock };
  return {
    database,
    deps,
    logged: () => lines.join(""),
    async run(request = { kind: "full" }, settings = {}) {
      const outcome = await reconcile(
        deps,
        { ...defaultReconcileSettings, graceMs: 0, ...settings },
        request,
      );
      if (outcome.kind !== "done") throw new Error(`the run was ${outcome.kind}`);
      return outcome.result;
    },
    async close() {
      await client.close();
      await database.destroy();
    },
  };
}
