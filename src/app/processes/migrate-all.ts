import { migrateQueueSchema } from "../../core/queue/backend.ts";
import type { LockPatience } from "../../platform/postgres/lock-waits.ts";
import type { Migrated } from "../../platform/postgres/migrations.ts";
import { createDatabase } from "../../platform/postgres/pool.ts";
import type { Runtime } from "../runtime.ts";
import { migrateSchema } from "../schema.ts";

/** Migrates our schema and the job queue's. Returns what changed in ours. Idempotent. */
export async function migrateAll(
  runtime: Pick<Runtime, "directUrl" | "log" | "parts">,
  { onWait = (line) => runtime.log.warn(line), ...patience }: Partial<LockPatience> = {},
): Promise<Migrated> {
  // Past a pooler, whose time limits are made for short statements.
  const url = await runtime.directUrl();
  const { log } = runtime;
  // One migrates; the other is asked whom it waits for.
  const db = createDatabase({ url, poolMax: 2, applicationName: "tallyhook migrate", log });
  try {
    const done = await migrateSchema(db, runtime.parts, { ...patience, onWait });
    // Also where the queue is on Redis today: a start without REDIS_URL would find no queue.
    await migrateQueueSchema(url, { ...patience, onWait });
    return done;
  } finally {
    await db.destroy();
  }
}
