import { migrateSchema } from "../../src/main/schema.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";

/** Brings a database to the schema of today, the queue's included. */
export async function migrate(url: string): Promise<void> {
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook bench" });
  try {
    await migrateSchema(db);
  } finally {
    await db.destroy();
  }
  await migrateQueueSchema(url);
}
