import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { ConfigurationError, UnreachableError } from "../../../src/platform/errors.ts";
import { assertReachable, assertVersion } from "../../../src/platform/postgres/reachable.ts";
import { databaseUrl } from "../../support/server-commands.ts";
import { useTestDatabase } from "../../support/use-database.ts";

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

describe("a database that cannot be used is named, with what to do and without the password", () => {
  test("the right one is passed", async () => {
    await expect(assertReachable(database.url)).resolves.toBeUndefined();
  });

  test("a wrong host", async () => {
    const error = await refusal(changed((url) => (url.hostname = "no-such-host.invalid")));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toMatch(/^DATABASE_URL: the host "no-such-host\.invalid" cannot be found/);
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
    expect(error.message).toMatch(/closed the connection immediately/);
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
    await expect(assertReachable(url, { variable: "REPORTS_URL" })).rejects.toThrow(/^REPORTS_URL: /);
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

test("a server that the migrations cannot run on is refused with its version, before anything else", () => {
  expect(() => assertVersion(140_019, "DATABASE_URL")).toThrow(
    "DATABASE_URL: the server is PostgreSQL 14. It should be 15 or later.",
  );
  expect(() => assertVersion(150_000, "DATABASE_URL")).not.toThrow();
});
