import { expect, onTestFinished, test } from "vitest";
import { migrateAll } from "../../../src/app/processes/migrate-all.ts";
import { allParts } from "../../../src/main/parts.ts";
import { createLog } from "../../../src/platform/log.ts";
import { eventually } from "../../support/eventually.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

test("a migration that waits says for whom, and goes on when they are done", async () => {
  await database.db.raw("drop view inbox.events");
  const reader = await database.db.transaction();
  onTestFinished(async () => void (await reader.rollback()));
  await reader.raw("set local application_name = 'a long report'");
  await reader.raw("lock table inbox.receipts in access exclusive mode");
  const lines: string[] = [];
  const runtime = {
    directUrl: () => Promise.resolve(database.directUrl),
    parts: allParts,
    log: createLog({ level: "silent", name: "test" }),
  };
  const migrating = migrateAll(runtime, { onWait: (line) => void lines.push(line) });
  await eventually("it says for whom it waits", () => lines[0]);
  await reader.rollback();
  expect(lines[0]).toMatch(/waits for process \d+ \(a long report, idle in transaction/);
  expect((await migrating).replaced).toContain("src/core/inbox/events.sql");
});
