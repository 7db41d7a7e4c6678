import { expect, test } from "vitest";
import {
  changedSchemaText,
  migratedSchemas,
  readSchemaText,
  recordSchemaText,
} from "../../src/platform/schema-text.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();

test("covers every schema that the migrations make", async () => {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
    `select nspname as name from pg_namespace
     where nspname !~ '^pg_' and nspname not in ('public', 'information_schema') order by 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual([...migratedSchemas]);
  expect(await changedSchemaText(database.db)).toEqual([]);
});

test("a change by hand is not taken for one of the next migration", async () => {
  await database.db.raw(`
    create function reports.kept() returns int language sql as 'select 1';
    create function reports.replaced() returns int language sql as 'select 1';
    create function reports.dropped() returns int language sql as 'select 1';
  `);
  await database.db.transaction((trx) => recordSchemaText(trx, []));
  expect(await changedSchemaText(database.db)).toEqual([]);

  await database.db.raw(
    "create or replace function reports.kept() returns int language sql as 'select 2'",
  );
  await database.db.raw("create function reports.by_hand() returns int language sql as 'select 1'");
  await database.db.transaction(async (trx) => {
    const before = await readSchemaText(trx);
    await trx.raw(`
      create or replace function reports.replaced() returns int language sql as 'select 3';
      drop function reports.dropped();
      create function reports.made() returns int language sql as 'select 1';
    `);
    await recordSchemaText(trx, before);
  });
  expect(await changedSchemaText(database.db)).toEqual([
    { kind: "function", name: "reports.kept()", change: "changed" },
    { kind: "function", name: "reports.by_hand()", change: "added" },
  ]);
});
