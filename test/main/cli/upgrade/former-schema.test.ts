import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copySample } from "../../../../src/main/cli/upgrade/copy-sample.ts";
import { migratedSchemas } from "../../../../src/platform/postgres/schema-objects.ts";
import {
  adoptDefinitions,
  makeFormerSchema,
} from "../../../../src/main/cli/upgrade/former-schema.ts";
import { migrateSchema } from "../../../../src/main/schema.ts";
import { type TestDatabase, createTestDatabase } from "../../../support/database.ts";

let source: TestDatabase;
let target: TestDatabase;
let folder: string;

/** A database of this version, in which somebody changed a view by hand, and an empty one. */
beforeAll(async () => {
  [source, target] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  await source.db.raw("alter view inbox.events set (security_barrier = true)");
  await target.db.raw(
    `drop schema ${migratedSchemas.join(", ")} cascade;
     drop table tallyhook_migrations, tallyhook_schema_objects, tallyhook_schema_texts`,
  );
  folder = await mkdtemp(join(tmpdir(), "tallyhook-former-"));
});
afterAll(async () => {
  await Promise.all([source.destroy(), target.destroy()]);
  await rm(folder, { recursive: true });
});

test("a copy of a database of this version has nothing to migrate, but what was changed by hand", async () => {
  const { signal } = new AbortController();
  await source.db.transaction(
    async (trx) => {
      expect(await makeFormerSchema(trx, target.db, folder)).toEqual([]);
      await copySample(trx, target.db, { rows: 1_000, signal });
      await adoptDefinitions(trx, target.db);
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
  expect(await migrateSchema(target.db)).toEqual({
    applied: [],
    replaced: ["src/inbox/events.sql"],
  });
});
