import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { describe, expect, inject, test } from "vitest";
import { ConfigurationError, UnreachableError } from "../../../src/platform/errors.ts";
import { createDatabase, createPool } from "../../../src/platform/postgres/pool.ts";
import { assertReachable, assertVersion } from "../../../src/platform/postgres/reachable.ts";
import { startStallingProxy } from "../../receiver/stalling-proxy.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { databaseUrl, withServer } from "../../support/server-commands.ts";

const database = useTestDatabase();

/** The database's URL with something changed. */
function changed(change: (url: URL) => void): string {
  const url = new URL(database.url);
  change(url);
  return url.href;
}

/** A server on a free port that does `onConnection` and nothing else. */
async function fakeServer(onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function refusal(url: string, timeoutMs = 1_000): Promise<Error> {
  try {
    await assertReachable(url, { timeoutMs });
  } catch (error) {
    return error as Error;
  }
  throw new Error("it was reachable");
}

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

describe("a database that cannot be used is named, with what to do and without the password", () => {
  test("the right one is passed", async () => {
    await expect(assertReachable(database.url)).resolves.toBeUndefined();
  });

  test("a wrong host", async () => {
    const error = await refusal(changed((url) => (url.hostname = "no-such-host.invalid")));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toMatch(
      /^DATABASE_URL: the host "no-such-host\.invalid" cannot be found/,
    );
  });

  test("a wrong port", async () => {
    const closed = await fakeServer(() => {});
    closed.close();
    const error = await refusal(changed((url) => (url.port = String(closed.port))));
    expect(error.message).toBe(
      `DATABASE_URL: nothing listens on 127.0.0.1:${closed.port}. Check host and port, and that PostgreSQL is running.`,
    );
  });

  test("a wrong password", async () => {
    const error = await refusal(changed((url) => (url.password = "hunter2")));
    expect(error.message).toMatch(/refuses the user "tallyhook". Check user name, password/);
    expect(error.message).not.toContain("hunter2");
  });

  test("a wrong user", async () => {
    const error = await refusal(changed((url) => (url.username = "nobody")));
    expect(error.message).toMatch(/refuses the user "nobody"/);
  });

  test("a wrong database", async () => {
    const error = await refusal(databaseUrl(database.url, "no_such_database"));
    expect(error.message).toMatch(/has no database "no_such_database". Create it/);
  });

  test("a server that accepts and never answers", async () => {
    const blackHole = await fakeServer(() => {});
    const startedMs = performance.now();
    const error = await refusal(changed((url) => (url.port = String(blackHole.port))));
    expect(error.message).toMatch(/does not answer as PostgreSQL within 1 s/);
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    blackHole.close();
  });

  test("a server that hangs up", async () => {
    const rude = await fakeServer((socket) => socket.resetAndDestroy());
    const error = await refusal(changed((url) => (url.port = String(rude.port))));
    expect(error.message).toMatch(/closed the connection at once/);
    rude.close();
  });

  test("a server that speaks HTTP", async () => {
    const http = await fakeServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const error = await refusal(changed((url) => (url.port = String(http.port))));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toContain(`127.0.0.1:${http.port}`);
    http.close();
  });

  test("a URL that is none", async () => {
    const error = await refusal("postgres://user:hunter2@host:port/x");
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(JSON.stringify([error.message, error.cause ?? null])).not.toContain("hunter2");
  });

  test("a file of certificates that is not there", async () => {
    const url = changed((each) => each.searchParams.set("sslrootcert", "/no/such/ca.pem"));
    const error = await refusal(url);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.message).toBe(
      "DATABASE_URL: the file /no/such/ca.pem named in it cannot be read (ENOENT). Check the path, and who may read it.",
    );
  });

  test("a database in another encoding", async () => {
    await database.db.raw("create database narrow encoding 'LATIN1' locale 'C' template template0");
    const error = await refusal(databaseUrl(database.url, "narrow"));
    await database.db.raw("drop database narrow");
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.message).toBe(
      "DATABASE_URL: the database is encoded in LATIN1. It should be UTF8: make another with create database … encoding 'UTF8' template template0.",
    );
  });

  test("another variable, when told", async () => {
    const url = databaseUrl(database.url, "no_such_database");
    await expect(assertReachable(url, { variable: "REPORTS_URL" })).rejects.toThrow(
      /^REPORTS_URL: /,
    );
  });
});

test("a server that is starting up is waited for", async () => {
  // What PostgreSQL sends then: ErrorResponse with 57P03.
  const fields = "SFATAL\0C57P03\0Mthe database system is starting up\0\0";
  const answer = Buffer.alloc(5 + fields.length);
  answer.write("E");
  answer.writeUInt32BE(4 + fields.length, 1);
  answer.write(fields, 5);
  let attempts = 0;
  const starting = await fakeServer((socket) => {
    attempts++;
    socket.end(answer);
  });
  const error = await refusal(
    changed((url) => (url.port = String(starting.port))),
    3_000,
  );
  expect(error.message).toMatch(/starting up, shutting down or recovering/);
  expect(attempts).toBeGreaterThan(1);
  starting.close();
});

const endConnections = (applicationName: string) =>
  withServer(database.url, (client) =>
    client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
      [applicationName],
    ),
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
])(
  "with synchronous_commit %s for the database, a pool commits with %s",
  async (configured, used) => {
    const name = new URL(database.url).pathname.slice(1);
    await database.db.raw(`alter database ?? set synchronous_commit = ${configured}`, [name]);
    const pool = createPool({ url: database.url, max: 1, applicationName: "durable pool" });
    const { rows } = await pool.query("SHOW synchronous_commit");
    expect(rows).toEqual([{ synchronous_commit: used }]);
    await pool.end();
  },
);

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

test("a server that the migrations cannot run on is refused with its version, before anything else", () => {
  expect(() => assertVersion(140_019, "DATABASE_URL")).toThrow(
    "DATABASE_URL: the server is PostgreSQL 14. It should be 15 or later.",
  );
  expect(() => assertVersion(150_000, "DATABASE_URL")).not.toThrow();
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

  test("stay where they idle, since a lock may be held by one", async () => {
    const options = { url: database.url, poolMax: 1, applicationName: "idle", receiveTimeoutMs };
    const db = createDatabase(options);
    const pid = async () =>
      (await db.raw("select pg_backend_pid() as pid, pg_sleep(0.3)")).rows[0].pid;
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
