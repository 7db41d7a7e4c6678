import { AsyncResource } from "node:async_hooks";
import type { AlertSettings } from "../../src/parts/alerts/settings.ts";
import { createServiceClock, wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { type ReconcileDeps, type ReconcileRequest, reconcile } from "../../src/parts/reconcile/reconcile.ts";
import type { ReconcileResult } from "../../src/parts/reconcile/runs/finish-run.ts";
import { type ReconcileSettings, defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import type { WalkProgress } from "../../src/parts/reconcile/walk/walk-all.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { createServiceClient } from "../../src/core/client/service-client.ts";
import { testAlertContext, toldTo } from "../alerts/test-alert-context.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { watchFence } from "./watch-fence.ts";

export interface ReconcileStand {
  database: TestDatabase;
  deps: ReconcileDeps;
  logged(): string;
  run(
    request?: ReconcileRequest,
    settings?: Partial<ReconcileSettings>,
    onProgress?: (progress: WalkProgress) => void,
  ): Promise<ReconcileResult>;
  close(): Promise<void>;
}

/**
 * A run of the stand that writes outside the fence of its lease fails. A database of its own and a client of the service at `baseUrl`. Without a grace, unless told. A call that takes as
 * long as the client's limits hangs: at those of a deployment, a run on a busy machine is incomplete.
 */
export async function createReconcileStand(
  baseUrl: string,
  {
    tryTimeoutMs = 60_000,
    apiKey = testKey,
    settings,
    database: shared,
  }: {
    tryTimeoutMs?: number;
    apiKey?: string;
    settings?: AlertSettings;
    /** Of another stand, which owns it. */
    database?: TestDatabase;
  } = {},
): Promise<ReconcileStand> {
  const database = shared ?? (await createTestDatabase());
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({ level: "debug", name: "test", destination });
  const serviceClock = createServiceClock(wallClock);
  const random = seededRandom("reconcile");
  const client = createServiceClient(
    { baseUrl, apiKey, log, wallClock, serviceClock, random },
    {
      tryTimeoutMs,
      deadlineMs: 150_000,
      retry: { maxAttempts: 4, baseDelayMs: 5, maxDelayMs: 20 },
    },
  );
  const alertContext = testAlertContext({
    serviceClock,
    ...(settings === undefined ? {} : { settings }),
  });
  const deps = { db: database.db, client, log, random, ...toldTo(alertContext) };
  return {
    database,
    deps,
    logged: () => lines.join(""),
    async run(request = { kind: "full" }, settings = {}, onProgress = () => {}) {
      // A test that writes when it is told of progress is not the run.
      const tell = AsyncResource.bind(onProgress);
      const outcome = await watchFence(database.db, () =>
        reconcile(deps, { ...defaultReconcileSettings, graceMs: 0, ...settings }, request, {
          onProgress: tell,
        }),
      );
      if (outcome.kind !== "done") throw new Error(`the run was ${outcome.kind}`);
      return outcome.result;
    },
    async close() {
      await client.close();
      if (shared === undefined) await database.destroy();
    },
  };
}

/** The rows and the history of the mirror as the database keeps them: any write changes them. */
export async function fingerprint({ database }: Pick<ReconcileStand, "database">): Promise<string> {
  const tables = ["orders", "transactions", "subscriptions", "customers", "versions"];
  const sums = tables.map(
    (table) => `(select count(*) || md5(string_agg(xmin::text || ctid::text, ',' order by ctid)) from mirror.${table})`,
  );
  const { rows } = await database.db.raw<{ rows: { all: string }[] }>(
    `select concat_ws('|', ${sums.join(", ")}) as all`,
  );
  return rows[0]?.all ?? "";
}
