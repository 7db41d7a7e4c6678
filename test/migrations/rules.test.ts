import { readFile, readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { migrationsFolder } from "../../src/platform/postgres/migrations.ts";
import { migrationProblems } from "../support/migration-rules.ts";

/** The files before it are older than these rules. */
const firstOfRules = "0011";

test("no new migration keeps running processes from their tables, or says why that is harmless", async () => {
  const names = (await readdir(migrationsFolder)).filter(
    (name) => /^\d{4}_.*\.sql$/.test(name) && name >= firstOfRules,
  );
  for (const name of names) {
    const text = await readFile(new URL(name, migrationsFolder), "utf8");
    expect(migrationProblems(text), name).toEqual([]);
  }
});

test("what a migration says that programs must know is an earlier file", async () => {
  const names = (await readdir(migrationsFolder)).filter((name) => /^\d{4}_.*\.sql$/.test(name));
  for (const name of names) {
    const text = await readFile(new URL(name, migrationsFolder), "utf8");
    for (const [, needed = ""] of text.matchAll(/^-- needs (.*)$/gm)) {
      expect(names, name).toContain(`${needed}.sql`);
      expect(`${needed}.sql` < name, name).toBe(true);
    }
  }
});

describe("in a transaction", () => {
  test.each([
    ["create index i on mirror.orders (a);", /stops all writes/],
    ["create unique index concurrently i on mirror.orders (a);", /cannot run in a transaction/],
    ["alter table mirror.orders alter column total type numeric;", /rewrites the table/],
    ["alter table mirror.orders alter total set data type numeric;", /rewrites the table/],
    ["alter table mirror.orders alter column total set not null;", /reads the whole table/],
    ["alter table mirror.orders add constraint c check (a > 0);", /not valid/],
    ["alter table mirror.orders add check (a > 0);", /not valid/],
    ["alter table mirror.orders add constraint c foreign key (a) references b (c);", /not valid/],
    ["alter table mirror.orders add constraint c check (a > 0) not valid, add unique (a);", /using index/],
    ["alter table mirror.orders add column a int references b (c);", /constraint of its own/],
    ["alter table mirror.orders add column a int not null;", /give it a default/],
    ["alter table mirror.orders add a uuid default gen_random_uuid();", /differs from row to row/],
    ["alter table mirror.orders add column a int generated always as (b + 1) stored;", /rewrites/],
    ["alter table mirror.orders validate constraint c;", /-- online/],
    ["alter table mirror.orders attach partition b for values in (1);", /reads the whole table/],
    ["alter table mirror.orders rename column a to b;", /a release later/],
    ["alter table mirror.orders drop column a;", /a release later/],
    ["drop table mirror.orders;", /a release later/],
    ["update mirror.orders set a = 1;", /in batches/],
    ["with x as (select 1) update mirror.orders set a = 1;", /in batches/],
    ["insert into mirror.b select * from mirror.orders;", /copies rows/],
    ["lock table mirror.orders;", /locks the whole table/],
  ])("%s is refused", (sql, why) => {
    const [first, ...others] = migrationProblems(`-- Why.\n${sql}`);
    expect(first).toMatch(/^line 2: /);
    expect(first).toMatch(why);
    expect(others).toEqual([]);
  });

  test.each([
    "alter table mirror.orders add column a int;",
    "alter table mirror.orders add column a int not null default 0, add b text default 'not null, unique';",
    "alter table mirror.orders add constraint c check (a is not null) not valid;",
    "alter table mirror.orders add constraint c unique using index i;",
    "alter table mirror.orders alter column a set default 3, set (fillfactor = 80);",
    "create table mirror.b (a int unique); create index i on mirror.b (a); insert into mirror.b values (1);",
    "create table mirror.b as select 1 as a; alter table mirror.b alter column a set not null;",
    "insert into reports.currencies (code, exponent) values ('eur', 2);",
    "comment on column mirror.orders.a is 'drop table mirror.orders';",
    "-- harmless: a row for each worker\ncreate index i on alerts.heartbeats (beat_at);",
    "alter table mirror.orders alter column a set not null -- harmless: 0009 has validated a check of it\n;",
  ])("%s passes", (sql) => {
    expect(migrationProblems(sql)).toEqual([]);
  });

  test("harmless without a reason, or a reason at another statement, excuses nothing", () => {
    const sql = "-- harmless:\ndrop table a.b;\n-- harmless: it is small\ndrop table a.c;\ndrop table a.d;";
    expect(migrationProblems(sql).map((problem) => problem.slice(0, 6))).toEqual(["line 2", "line 5"]);
  });
});

describe("online", () => {
  test.each([
    "create index concurrently if not exists i on mirror.orders (a);",
    "drop index concurrently if exists mirror.i;",
    "alter table mirror.orders validate constraint c;",
    "-- repeat\nupdate mirror.orders set a = 0 where id in (select id from mirror.orders where a is null limit 1000);",
  ])("%s passes", (sql) => {
    expect(migrationProblems(`-- online\n${sql}`)).toEqual([]);
  });

  test.each([
    ["create index i on mirror.orders (a);", /run again after a crash/],
    ["create index concurrently i on mirror.orders (a);", /run again after a crash/],
    ["alter table mirror.orders add column a int;", /run again after a crash/],
    ["update mirror.orders set a = 0 where a is null;", /-- repeat/],
    ["-- repeat\nupdate mirror.orders set a = 0 where a is null;", /a limit/],
  ])("%s is refused", (sql, why) => {
    expect(migrationProblems(`-- online\n${sql}`).join()).toMatch(why);
  });
});
