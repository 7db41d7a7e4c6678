import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, inject, test } from "vitest";
import { createDatabase, createPool } from "../../../src/platform/postgres/pool.ts";
import { startStallingProxy } from "../../receiver/stalling-proxy.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { withServer } from "../../support/server-commands.ts";

const database = useTestDatabase();

describe("a connection on which the server says that it is read-only is given up", () => {
  const write = "delete from receiver.probes";
  const setReadOnly = (value: string) =>
    withServer(inject("serverUrl"), async (client) => {
      await client.query(`alter database ${new URL(database.url).pathname.slice(1)} ${value}`);
    });

  test.each([
    [
      "Knex",
      () => {
        const db = createDatabase({ url: database.url, poolMax: 1, applicationName: "test" });
        return { run: () => db.raw(write), end: () => db.destroy() };
      },
    ],
    [
      "pg",
      () => {
        const pool = createPool({ url: database.url, max: 1, applicationName: "test" });
        // Not `pool.query`, which drops a connection after any error.
        const run = async () => {
          const client = await pool.connect();
          return client.query(write).finally(() => client.release());
        };
        return { run, end: () => pool.end() };
      },
    ],
  ])("so that the next one may reach the primary: %s", async (_, open) => {
    const { run, end } = open();
    await setReadOnly("set default_transaction_read_only = on");
    await expect(run()).rejects.toMatchObject({ code: "25006" });
    await setReadOnly("reset default_transaction_read_only");
    await expect(run()).resolves.toBeDefined();
    await end();
  });
});

const endConnections = (applicationName: string) =>
  withServer(database.url, (client) =>
    client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [
      applicationName,
    ]),
  );

test("a pool outlives the loss of its connections, idle and checked out", async () => {
  const pool = createPool({ url: database.url, max: 2, applicationName: "lost pool" });
  const client = await pool.connect();
  await Promise.all([client.query("SELECT 1"), pool.query("SELECT 1")]);
  await endConnections("lost pool");
  await expect.poll(() => pool.totalCount).toBe(1);
  await expect(client.query("SELECT 1")).rejects.toThrow();
  client.release(true);
  expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  await pool.end();
});

test.each([
  ["off", "on"],
  ["on", "on"],
  ["local", "local"],
  ["remote_apply", "remote_apply"],
])("with synchronous_commit %s for the database, a pool commits with %s", async (configured, used) => {
  const name = new URL(database.url).pathname.slice(1);
  await database.db.raw(`alter database ?? set synchronous_commit = ${configured}`, [name]);
  const pool = createPool({ url: database.url, max: 1, applicationName: "durable pool" });
  const { rows } = await pool.query("SHOW synchronous_commit");
  expect(rows).toEqual([{ synchronous_commit: used }]);
  await pool.end();
});

test("a pool whose commits may be lost does not wait for the log, and finds its schema", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await database.db.raw("alter database ?? set synchronous_commit = on", [name]);
  const pool = createPool({
    url: database.url,
    max: 1,
    applicationName: "lazy pool",
    searchPath: "elsewhere",
    mayLoseCommits: true,
  });
  const { rows } = await pool.query(
    "select current_setting('synchronous_commit') as commits, current_setting('search_path') as path",
  );
  expect(rows).toEqual([{ commits: "off", path: "elsewhere" }]);
  await pool.end();
});

test("a pool gives up a statement that takes too long", async () => {
  const pool = createPool({
    url: database.url,
    max: 1,
    applicationName: "slow pool",
    statementTimeoutMs: 50,
  });
  await expect(pool.query("SELECT pg_sleep(10)")).rejects.toMatchObject({ code: "57014" });
  await pool.end();
});

test("a pool gives up waiting for a free connection", async () => {
  const options = {
    url: database.url,
    max: 1,
    applicationName: "full pool",
    connectTimeoutMs: 1_000,
  };
  const pool = createPool(options);
  const client = await pool.connect();
  await expect(pool.query("SELECT 1")).rejects.toThrow(/timeout/);
  client.release();
  await pool.end();
});

test("knex outlives the loss of its connections, and gives big integers as text", async () => {
  const db = createDatabase({ url: database.url, poolMax: 2, applicationName: "lost knex" });
  await db.raw("SELECT 1");
  await endConnections("lost knex");
  await expect
    .poll(async () =>
      db.raw("SELECT 1").then(
        () => "works",
        () => "lost",
      ),
    )
    .toBe("works");
  const { rows } = await db.raw<{ rows: unknown[] }>(
    "SELECT 9007199254740993 AS big, current_setting('application_name') AS name",
  );
  expect(rows).toEqual([{ big: "9007199254740993", name: "lost knex" }]);
  await db.destroy();
});

describe("connections that fall silent for good while new ones work", () => {
  const receiveTimeoutMs = 500;

  test("are given up by a Knex once a statement had no answer for so long, the idle ones with it", async () => {
    const proxy = await startStallingProxy(database.url);
    const options = { url: proxy.url, poolMax: 4, applicationName: "silent", receiveTimeoutMs };
    const db = createDatabase(options);
    try {
      await Promise.all([1, 2, 3, 4].map(() => db.raw("select pg_sleep(0.05)")));
      proxy.strand();
      await expect(db.raw("select 1")).rejects.toThrow("received nothing for 500 ms");
      // Each of the three others would cost as long again.
      await Promise.all([1, 2, 3, 4].map(() => db.raw("select 1")));
    } finally {
      await db.destroy();
      await proxy.close();
    }
  });

  test("are given up by a pool of the driver all at once", async () => {
    const proxy = await startStallingProxy(database.url);
    const pool = createPool({
      url: proxy.url,
      max: 4,
      applicationName: "silent",
      receiveTimeoutMs,
    });
    try {
      await Promise.all([1, 2, 3, 4].map(() => pool.query("select pg_sleep(0.05)")));
      proxy.strand();
      await expect(pool.query("select 1")).rejects.toThrow("received nothing for 500 ms");
      await Promise.all([1, 2, 3, 4].map(() => pool.query("select 1")));
    } finally {
      await pool.end();
      await proxy.close();
    }
  });

  test("are given up also where they had idled for longer than that before", async () => {
    const proxy = await startStallingProxy(database.url);
    const options = { url: proxy.url, applicationName: "idled", receiveTimeoutMs };
    const db = createDatabase({ ...options, poolMax: 1 });
    const pool = createPool({ ...options, max: 1 });
    try {
      const [ofKnex, ofDriver] = [await db.client.pool.acquire().promise, await pool.connect()];
      const idled = [ofKnex, ofDriver].map((client) =>
        once((client as unknown as { connection: { stream: Socket } }).connection.stream, "timeout"),
      );
      await Promise.all(idled);
      db.client.pool.release(ofKnex);
      ofDriver.release();
      proxy.strand();
      const silent = "received nothing for 500 ms";
      await expect(db.raw("select 1")).rejects.toThrow(silent);
      await expect(pool.query("select 1")).rejects.toThrow(silent);
    } finally {
      await Promise.all([db.destroy(), pool.end()]);
      await proxy.close();
    }
  });

  test("stay where they idle, since a lock may be held by one", async () => {
    const options = { url: database.url, poolMax: 1, applicationName: "idle", receiveTimeoutMs };
    const db = createDatabase(options);
    const pid = async () => (await db.raw("select pg_backend_pid() as pid, pg_sleep(0.3)")).rows[0].pid;
    try {
      const before: unknown = await pid();
      const quiet = db.client.pool;
      const client = await quiet.acquire().promise;
      await once(client.connection.stream, "timeout");
      quiet.release(client);
      expect(await pid()).toBe(before);
    } finally {
      await db.destroy();
    }
  });
});
