import type { Knex } from "knex";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, createPool } from "../../../src/platform/postgres/pool.ts";
import { transactionSettings } from "../../../src/platform/postgres/session-settings.ts";
import { type PgBouncer, pgbouncerInstalled, startPgBouncer } from "../../support/pgbouncer.ts";
import { withServer } from "../../support/server-commands.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

/** What would change the meaning of statements, were it not set in each transaction. */
const hostile: Readonly<Record<string, string>> = {
  DateStyle: "'SQL, DMY'",
  IntervalStyle: "'sql_standard'",
  TimeZone: "'Asia/Kolkata'",
  search_path: "pg_catalog",
  array_nulls: "off",
  bytea_output: "'escape'",
  extra_float_digits: "-15",
  standard_conforming_strings: "off",
  backslash_quote: "off",
  quote_all_identifiers: "on",
  transform_null_equals: "on",
  xmloption: "'document'",
  default_transaction_isolation: "'serializable'",
  synchronous_commit: "off",
};

describe.runIf(pgbouncerInstalled)("through a pooler that lends by the transaction", () => {
  // One connection of the server, which all clients share; it takes nothing that a client brings along.
  let pooler: PgBouncer;
  let db: Knex;
  let inbox: Pool;

  beforeAll(async () => {
    const name = new URL(database.url).pathname.slice(1);
    await withServer(database.url, async (client) => {
      for (const [setting, value] of Object.entries(hostile)) {
        await client.query(`alter database ${name} set ${setting} = ${value}`);
      }
    });
    const settings = { default_pool_size: 1, ignore_startup_parameters: "" };
    pooler = await startPgBouncer(database.url, "transaction", settings);
    const pooled = { url: pooler.url, pooling: "transaction" } as const;
    db = createDatabase({ ...pooled, poolMax: 2, applicationName: "pooled" });
    inbox = createPool({ ...pooled, max: 1, applicationName: "inbox", statementTimeoutMs: 5_250 });
  });
  afterAll(async () => {
    await db.destroy();
    await inbox.end();
    await pooler.stop();
  });

  const current = `select json_object_agg(name, setting) as settings from pg_settings where name = any(?)`;
  const names = [...Object.keys(transactionSettings), "transaction_isolation"];
  const right = { ...transactionSettings, transaction_isolation: "read committed" };

  test("a statement by itself has the settings, whatever the database is set to", async () => {
    const { rows } = await db.raw(current, [names]);
    expect(rows).toEqual([{ settings: right }]);
  });

  test("a transaction has them from its first statement on, and its own isolation", async () => {
    await db.transaction(async (trx) => {
      const { rows } = await trx.raw(current, [names]);
      expect(rows).toEqual([{ settings: right }]);
    });
    await db.transaction(
      async (trx) => {
        const { rows } = await trx.raw("show transaction_isolation");
        expect(rows).toEqual([{ transaction_isolation: "repeatable read" }]);
      },
      { isolationLevel: "repeatable read" },
    );
  });

  test.each([
    ["off", "on"],
    ["on", "on"],
    ["local", "local"],
    ["remote_apply", "remote_apply"],
  ])("with synchronous_commit %s, the inbox commits with %s", async (configured, used) => {
    const name = new URL(database.url).pathname.slice(1);
    await withServer(database.url, (client) =>
      client.query(`alter database ${name} set synchronous_commit = ${configured}`),
    );
    await pooler.command("reconnect");
    const { rows } = await inbox.query(
      "select current_setting('synchronous_commit') as commits, current_setting('statement_timeout') as timeout",
    );
    expect(rows).toEqual([{ commits: used, timeout: "5250ms" }]);
  });

  test("nothing of it stays on the server's connection for the next client", async () => {
    await inbox.query("select 1");
    await withServer(pooler.url, async (client) => {
      const { rows } = await client.query(
        "select current_setting('TimeZone') as zone, current_setting('statement_timeout') as timeout",
      );
      expect(rows).toEqual([{ zone: "Asia/Kolkata", timeout: "0" }]);
    });
  });

  test("two clients may use one name for two statements, one after the other on one connection", async () => {
    const named = (sql: string) => ({ name: "same", text: sql, values: [1] });
    const other = createPool({
      url: pooler.url,
      pooling: "transaction",
      max: 1,
      applicationName: "other",
    });
    for (let round = 0; round < 2; round++) {
      expect((await inbox.query(named("select $1::int as n"))).rows).toEqual([{ n: 1 }]);
      expect((await other.query(named("select $1::int + 1 as n"))).rows).toEqual([{ n: 2 }]);
    }
    await other.end();
  });

  test("a statement that fails is undone, and the connection goes on", async () => {
    await db.raw("create table mirror.tried (n int primary key)");
    const twice = "with first as (insert into mirror.tried values (?) returning n) select n / 0 from first";
    await expect(db.raw(twice, [1])).rejects.toMatchObject({ code: "22012" });
    await expect(inbox.query("insert into mirror.tried values ($1), ($1)", [2])).rejects.toMatchObject({
      code: "23505",
    });
    expect(await db("mirror.tried").pluck("n")).toEqual([]);
  });

  test("a transaction that fails is undone as a whole, and one inside it by itself", async () => {
    await db.raw("create table mirror.nested (n int)");
    await db.transaction(async (trx) => {
      await trx("mirror.nested").insert({ n: 1 });
      await trx
        .transaction(async (savepoint) => {
          await savepoint("mirror.nested").insert({ n: 2 });
          throw new Error("undone");
        })
        .catch(() => {});
    });
    const failed = db.transaction(async (trx) => {
      await trx("mirror.nested").insert({ n: 3 });
      throw new Error("undone");
    });
    await expect(failed).rejects.toThrow("undone");
    expect(await db("mirror.nested").pluck("n")).toEqual([1]);
  });

  test("statements that one client is given at once run one after another, each by itself", async () => {
    const client = await inbox.connect();
    const answers = await Promise.allSettled([1, 0, 2].map((n) => client.query("select 2 / $1::int as n", [n])));
    client.release();
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(answers.at(-1)).toMatchObject({ value: { rows: [{ n: 1 }] } });
  });

  test("a statement that waits too long is ended by the server, and its connection is free again", async () => {
    const hasty = createPool({
      url: pooler.url,
      pooling: "transaction",
      max: 1,
      applicationName: "hasty",
      statementTimeoutMs: 50,
    });
    await expect(hasty.query("select pg_sleep(10)")).rejects.toMatchObject({ code: "57014" });
    expect((await inbox.query("select 1 as n")).rows).toEqual([{ n: 1 }]);
    await hasty.end();
  });
});
