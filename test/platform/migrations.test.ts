import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { migrateToLatest, pendingMigrations } from "../../src/platform/migrations.ts";
import { createDatabase } from "../../src/platform/postgres.ts";
import type { TestDatabase } from "../support/database.ts";
import { createTestDatabase } from "../support/database.ts";

let database: TestDatabase;
let directory: string;
let url: URL;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.destroy());

beforeEach(async () => {
  await database.db.raw(
    "DROP TABLE IF EXISTS tallyhook_migrations, tallyhook_migrations_lock, a, b",
  );
  directory = await mkdtemp(join(tmpdir(), "tallyhook-migrations-"));
  url = pathToFileURL(`${directory}/`);
  await writeFile(join(directory, "package.json"), '{ "type": "module" }');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const migration = (up: string) => `
  export const up = async (db) => { ${up} };
  export const down = async () => {};
`;
const write = (file: string, up: string) => writeFile(join(directory, file), migration(up));

test("pending ones are applied in order, once, and listed without changing anything", async () => {
  await write("0002_b.ts", 'await db.schema.renameTable("a", "b");');
  await write("0001_a.ts", 'await db.schema.createTable("a", (t) => t.increments());');
  await writeFile(join(directory, "0003_notes.md"), "");
  expect(await pendingMigrations(database.db, url)).toEqual(["0001_a", "0002_b"]);
  expect(await database.db.schema.hasTable("tallyhook_migrations")).toBe(false);
  expect(await migrateToLatest(database.db, url)).toEqual(["0001_a", "0002_b"]);
  expect(await migrateToLatest(database.db, url)).toEqual([]);
  expect(await pendingMigrations(database.db, url)).toEqual([]);
});

test("no migrations, and no folder of them, are nothing to do", async () => {
  expect(await migrateToLatest(database.db, url)).toEqual([]);
  expect(await migrateToLatest(database.db, new URL("nowhere/", url))).toEqual([]);
});

test("the build's files go on where the sources' left off", async () => {
  await write("0001_a.ts", 'await db.schema.createTable("a", (t) => t.increments());');
  await migrateToLatest(database.db, url);
  await rm(join(directory, "0001_a.ts"));
  await write("0001_a.js", "throw new Error();");
  await writeFile(join(directory, "0001_a.d.ts"), "");
  await writeFile(join(directory, "0001_a.js.map"), "");
  await write("0002_b.js", 'await db.schema.createTable("b", (t) => t.increments());');
  expect(await migrateToLatest(database.db, url)).toEqual(["0002_b"]);
});

test("a failing one leaves nothing behind, neither its neighbours' changes nor a lock", async () => {
  await write("0001_a.ts", 'await db.schema.createTable("a", (t) => t.increments());');
  await write("0002_b.ts", 'await db.raw("SELECT nonsense");');
  await expect(migrateToLatest(database.db, url)).rejects.toMatchObject({ code: "42703" });
  expect(await database.db.schema.hasTable("a")).toBe(false);
  await rm(join(directory, "0002_b.ts"));
  expect(await migrateToLatest(database.db, url)).toEqual(["0001_a"]);
});

test("of two processes at once one migrates and the other finds nothing to do", async () => {
  await write("0001_a.ts", 'await db.schema.createTable("a", (t) => t.increments());');
  const open = (): Knex =>
    createDatabase({ url: database.url, poolMax: 1, applicationName: "migrating" });
  const databases = [open(), open(), open()];
  const applied = await Promise.all(databases.map((db) => migrateToLatest(db, url)));
  expect(applied.flat()).toEqual(["0001_a"]);
  await Promise.all(databases.map((db) => db.destroy()));
});

test("a database of a newer version is refused and left as it is", async () => {
  await write("0001_a.ts", "");
  await write("0002_from_the_future.ts", "");
  await migrateToLatest(database.db, url);
  await rm(join(directory, "0002_from_the_future.ts"));
  const refused = migrateToLatest(database.db, url);
  await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
  await expect(refused).rejects.toThrow(
    /newer version of Tallyhook \(it has 0002_from_the_future\)/,
  );
});

test("a cloned test database has nothing pending", async () => {
  const clone = await createTestDatabase({ poolMax: 1 });
  expect(await pendingMigrations(clone.db)).toEqual([]);
  expect(await migrateToLatest(clone.db)).toEqual([]);
  await clone.destroy();
});
