import { readFile, readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { migrationsFolder } from "../../../src/platform/postgres/migrations.ts";
import { splitStatements } from "../../../src/platform/postgres/sql-file.ts";

const textsOf = (sql: string) => splitStatements(sql).map(({ text }) => text);

test("a file is split at its semicolons, and says where each statement begins", () => {
  const sql = "-- Why.\nselect 1;\n\n/* how */ select 2 -- what\n  ;select 3";
  expect(splitStatements(sql)).toEqual([
    { text: "select 1", offset: 8, comments: ["Why."] },
    { text: "select 2 -- what", offset: sql.indexOf("select 2"), comments: ["how", "what"] },
    { text: "select 3", offset: sql.indexOf("select 3"), comments: [] },
  ]);
  expect(splitStatements("-- Nothing.\n;\n")).toEqual([]);
});

test("a semicolon in a string, a name, a comment or a body ends no statement", () => {
  const whole = [
    `select 'a;''b', e'c\\';d', "e;""f"`,
    "do $$ begin perform 1; end $$",
    "create function f() returns int language sql as $body$ select $$;$$; select 1; $body$",
    "create or replace function g(a int) returns int begin atomic select case when a > 0 then 1 end; select 2; end",
    "select 1 /* ; */ + 1",
    "select $1, a$b from t",
  ];
  expect(textsOf(whole.join(";\n"))).toEqual(whole);
});

test("of the program's own files nothing is lost", async () => {
  for (const name of (await readdir(migrationsFolder)).filter((file) => file.endsWith(".sql"))) {
    const sql = await readFile(new URL(name, migrationsFolder), "utf8");
    const statements = splitStatements(sql);
    const rest = statements.reduce((left, { text }) => left.replace(text, ""), sql);
    expect(rest.replaceAll(/^\s*--.*$|[;\s]/gm, ""), name).toBe("");
    for (const { text } of statements)
      expect(text).toMatch(/^(create|alter|comment|insert|update|drop|lock|do|analyze) /);
  }
});
