import { expect, test } from "vitest";
import { changedObjects, migratedSchemas, readLiveObjects } from "../../../src/platform/postgres/schema-objects.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

test("the program's schemas are those that the migrations make", async () => {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
    `select nspname as name from pg_namespace
     where nspname !~ '^pg_' and nspname not in ('public', 'information_schema') order by 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual([...migratedSchemas]);
});

test("every function, view and trigger has a file, and is as that file makes it", async () => {
  const live = await readLiveObjects(database.db);
  const files = await database.db("tallyhook_schema_objects").count<{ n: string }[]>("* as n");
  expect(Number(files[0]?.n)).toBe(live.length);
  expect(await changedObjects(database.db)).toEqual([]);
});

test("what somebody added is named", async () => {
  await database.db.raw("create function reports.by_hand() returns int language sql as 'select 1'");
  expect(await changedObjects(database.db)).toEqual([{ kind: "function", name: "reports.by_hand()", change: "added" }]);
});
