import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { defaultReceiverLimits } from "../../src/core/receiver/limits.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { type RawConnection, openConnection, requestBytes } from "./raw-http.ts";
import {
  type Stand,
  type StandOptions,
  delivery,
  expectRefusal,
  newEvent,
  signatureOf,
  startStand,
  timed,
  until,
} from "./receiver-stand.ts";

const limits = { headersMs: 300, requestMs: 700, answerMs: 1_500, tickMs: 50, keepAliveMs: 400 };
/** For what is not about these times. */
const patient = { ...limits, keepAliveMs: 60_000, headersMs: 20_000, requestMs: 25_000 };
/** A wrong signature waits for as long as the secrets cannot be read. */
const patientSecrets = { reloadAtMostEveryMs: 0, refreshWaitMs: 20_000 };
/** By how much a loaded machine may be late; who is not cut off waits for ever. */
const slackMs = 60_000;

let database: TestDatabase;
let stand: Stand;
let connections: RawConnection[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  stand = await startStand(database.url, { options: { limits } });
});
afterEach(() => {
  for (const connection of connections) connection.destroy();
  connections = [];
});
afterAll(async () => {
  await stand.close();
  await database.destroy();
});

async function open(port = stand.port): Promise<RawConnection> {
  const connection = await openConnection(port);
  connections.push(connection);
  return connection;
}

async function withStand(options: StandOptions, work: (own: Stand) => Promise<void>): Promise<void> {
  const own = await startStand(database.url, options);
  try {
    await work(own);
  } finally {
    await own.close();
  }
}

/** Nobody reads the secrets meanwhile. */
async function whileSecretsAreLocked(work: () => Promise<void>): Promise<void> {
  await stand.db.transaction(async (trx) => {
    await trx.raw("lock table receiver.secrets in access exclusive mode");
    await work();
  });
}

/** A sender that goes on and on, a piece at a time, until it is cut off. */
function drip(connection: RawConnection, piece: string | Buffer, everyMs: number): void {
  const timer = setInterval(() => connection.write(piece), everyMs);
  void connection.closed.then(() => clearInterval(timer));
}

describe("a sender that is slow", () => {
  test("with its body is told so in time, and its event is not taken", async () => {
    const before = { ...stand.receiver.counters.rejected };
    const { body } = newEvent();
    const bytes = requestBytes(delivery(body));
    const connection = await open();
    connection.write(bytes.subarray(0, bytes.length - 5));
    const { result, ms } = await timed(() => connection.answer());
    if (result === null) throw new Error("no answer");
    expectRefusal(result, 408, "request_timeout");
    expect(ms).toBeLessThan(limits.requestMs + slackMs);
    await connection.closed;
    expect(await stand.stored(body)).toEqual([]);
    await until(() => stand.receiver.counters.inFlight === 0);
    expect(stand.receiver.counters.rejected).toEqual({ ...before, slow: before.slow + 1 });
  });

  test("with a body that drips is cut off as well", async () => {
    const connection = await open();
    connection.write(requestBytes({ headers: [["Content-Length", "60000"]] }));
    drip(connection, "x", 20);
    const { result, ms } = await timed(() => connection.answer());
    // A piece that arrives after the end resets the connection, and the answer may be lost with it.
    expect([408, undefined]).toContain(result?.status);
    expect(ms).toBeLessThan(limits.requestMs + slackMs);
  });

  test("with its headers is cut off long before a request with a body is", async () => {
    await withStand({ options: { limits: { ...limits, requestMs: 10 * slackMs } } }, async (own) => {
      const connection = await open(own.port);
      connection.write("POST /webhooks HTTP/1.1\r\nHost: a\r\n");
      drip(connection, "X-Header: x\r\n", 20);
      const { result, ms } = await timed(() => connection.answer());
      expect([408, undefined]).toContain(result?.status);
      expect(ms).toBeLessThan(limits.headersMs + slackMs);
    });
  });

  test("that never sends anything is cut off", async () => {
    const connection = await open();
    const { ms } = await timed(() => connection.closed);
    expect(ms).toBeLessThan(limits.headersMs + slackMs);
  });

  test("to send its next request loses the connection after the time for idling", async () => {
    const connection = await open();
    connection.write(requestBytes({ method: "GET", path: "/healthz" }));
    expect((await connection.answer())?.status).toBe(200);
    const { ms } = await timed(() => connection.closed);
    expect(ms).toBeGreaterThan(limits.keepAliveMs - 100);
    // Node grants a second more than the time it announces.
    expect(ms).toBeLessThan(limits.keepAliveMs + 1_000 + slackMs);
  });
});

test("with the limits that are set from the start no request is held for 10 s", async () => {
  const { headersMs, requestMs, answerMs, tickMs } = defaultReceiverLimits;
  expect(requestMs + tickMs).toBeLessThan(answerMs);
  expect(headersMs + answerMs + 2 * tickMs).toBeLessThan(10_000);
  await withStand({}, async (own) => {
    const bytes = requestBytes(delivery(newEvent().body));
    const connection = await open(own.port);
    connection.write(bytes.subarray(0, bytes.length - 5));
    const { result, ms } = await timed(() => connection.answer());
    expect(result?.status).toBe(408);
    expect(ms).toBeLessThan(10_000);
  });
});

test("a sender that does not read its answers is cut off, however many it asks for", async () => {
  const connection = await open();
  connection.socket.pause();
  const request = requestBytes({ method: "GET", path: "/nowhere" });
  // Far more answers than the buffers between us hold; whoever writes on learns that the connection is gone.
  drip(connection, Buffer.concat(Array.from({ length: 2_000 }, () => request)), 20);
  await connection.closed;
});

describe("a body without end", () => {
  test("in chunks ends at the limit, and what follows is not kept", async () => {
    const before = stand.receiver.counters.rejected.too_large;
    const connection = await open();
    connection.write(requestBytes({ headers: [["Transfer-Encoding", "chunked"]] }));
    drip(connection, `4000\r\n${"x".repeat(0x4000)}\r\n`, 1);
    const answer = await connection.answer();
    if (answer === null) throw new Error("no answer");
    expectRefusal(answer, 413, "body_too_large");
    const { ms } = await timed(() => connection.closed);
    expect(ms).toBeLessThan(limits.requestMs + slackMs);
    expect(stand.receiver.counters.rejected.too_large).toBe(before + 1);
    expect(stand.receiver.counters.inFlight).toBe(0);
  });

  test("in tiny chunks ends in time", async () => {
    const connection = await open();
    connection.write(requestBytes({ headers: [["Transfer-Encoding", "chunked"]] }));
    drip(connection, "1\r\nx\r\n", 5);
    const { result, ms } = await timed(() => connection.answer());
    expect([408, undefined]).toContain(result?.status);
    expect(ms).toBeLessThan(limits.requestMs + slackMs);
  });

  test("where it is refused unread ends in time", async () => {
    const connection = await open();
    connection.write(requestBytes({ path: "/nowhere", headers: [["Transfer-Encoding", "chunked"]] }));
    drip(connection, `1000\r\n${"x".repeat(0x1000)}\r\n`, 5);
    expect((await connection.answer())?.status).toBe(404);
    const { ms } = await timed(() => connection.closed);
    expect(ms).toBeLessThan(limits.requestMs + slackMs);
  });
});

test("a sender that goes away in the middle of its body leaves nothing behind", async () => {
  const before = { ...stand.receiver.counters.rejected };
  const bytes = requestBytes(delivery(newEvent().body));
  const connection = await open();
  connection.write(bytes.subarray(0, bytes.length - 5));
  await until(() => stand.receiver.counters.inFlight === 1);
  connection.destroy();
  await until(() => stand.receiver.counters.inFlight === 0);
  expect(stand.receiver.counters.rejected).toEqual({ ...before, aborted: before.aborted + 1 });
});

test("a sender that goes away before its answer has its event stored", async () => {
  const { body } = newEvent();
  const connection = await open();
  connection.write(requestBytes(delivery(body)));
  connection.destroy();
  await until(async () => (await stand.stored(body)).length === 1);
});

describe("a sender that asks before it sends the body (Expect: 100-continue)", () => {
  const expecting = (headers: readonly (readonly [string, string])[]) =>
    requestBytes({ headers: [["Expect", "100-continue"], ...headers] });

  test("is invited when the headers are in order", async () => {
    const { body } = newEvent();
    const connection = await open();
    const signature = ["SVC-Signature", signatureOf(Buffer.from(body))] as const;
    connection.write(expecting([["Content-Length", String(body.length)], signature]));
    expect((await connection.answer())?.status).toBe(100);
    connection.write(body);
    expect((await connection.answer())?.status).toBe(200);
    expect(await stand.stored(body)).toHaveLength(1);
  });

  test.each<[number, [string, string][]]>([
    [413, [["Content-Length", "65537"]]],
    [
      415,
      [
        ["Content-Length", "10"],
        ["Content-Encoding", "gzip"],
      ],
    ],
  ])("is refused with %i and not invited", async (status, headers) => {
    const connection = await open();
    connection.write(expecting(headers));
    const answer = await connection.answer();
    expect(answer?.status).toBe(status);
    expect(answer?.headers.get("connection")).toBe("close");
    await connection.closed;
  });

  test("is not invited to where nothing is", async () => {
    const connection = await open();
    const headers = [
      ["Expect", "100-continue"],
      ["Content-Length", "5"],
    ] as const;
    connection.write(requestBytes({ path: "/nowhere", headers }));
    expect((await connection.answer())?.status).toBe(404);
  });
});

describe("requests sent one behind the other without waiting", () => {
  const okBytes = (): Buffer => requestBytes(delivery(newEvent().body));

  test("are answered in order", async () => {
    const events = Array.from({ length: 20 }, () => newEvent());
    const connection = await open();
    connection.write(Buffer.concat(events.map(({ body }) => requestBytes(delivery(body)))));
    for (const { id } of events) {
      const answer = await connection.answer();
      expect(JSON.parse(answer?.body ?? "null")).toEqual({ received: true, id, duplicate: false });
    }
  });

  test.each([
    ["what is no HTTP", "no request at all\r\n\r\n", 400],
    ["headers that are too long", `GET / HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n`, 431],
    ["a request for a tunnel", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405],
    ["an unknown expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417],
  ])("are answered before %s, which has its own answer after them", async (_, last, status) => {
    const connection = await open();
    connection.write(Buffer.concat([okBytes(), okBytes(), Buffer.from(last)]));
    expect((await connection.answer())?.status).toBe(200);
    expect((await connection.answer())?.status).toBe(200);
    expect((await connection.answer())?.status).toBe(status);
    await connection.closed;
  });

  test("are as many as one connection may bring, and the last one says so", async () => {
    const options = { limits: { ...limits, requestsPerConnection: 2 } };
    await withStand({ options }, async (own) => {
      const connection = await open(own.port);
      connection.write(Buffer.concat([okBytes(), okBytes()]));
      expect((await connection.answer())?.headers.get("connection")).toBe("keep-alive");
      expect((await connection.answer())?.headers.get("connection")).toBe("close");
      await connection.closed;
    });
  });
});

describe("a sender that closes its side and waits", () => {
  test("gets its answer", async () => {
    const { body } = newEvent();
    const connection = await open();
    connection.socket.end(requestBytes(delivery(body)));
    expect((await connection.answer())?.status).toBe(200);
    await connection.closed;
    expect(await stand.stored(body)).toHaveLength(1);
  });

  test("in the middle of a further request gets the answers to those before it", async () => {
    const bytes = requestBytes(delivery(newEvent().body));
    const connection = await open();
    connection.socket.end(Buffer.concat([bytes, bytes.subarray(0, bytes.length - 5)]));
    expect((await connection.answer())?.status).toBe(200);
    await connection.closed;
    await until(() => stand.receiver.counters.inFlight === 0);
  });
});

describe("past the cap on connections", () => {
  const capped = (more: Partial<typeof limits & { silentPerAddress: number }> = {}) => ({
    options: { maxConnections: 3, limits: { ...patient, answerMs: 30_000, ...more } },
  });
  const health = requestBytes({ method: "GET", path: "/healthz" });
  const bodyToCome = requestBytes({ headers: [["Content-Length", "10"]] });

  test("a new one takes the place of the oldest that has sent nothing", async () => {
    await withStand(capped(), async (own) => {
      const [first, second] = [await open(own.port), await open(own.port)];
      const third = await open(own.port);
      const fourth = await open(own.port);
      await first.closed;
      for (const connection of [second, third, fourth]) {
        connection.write(health);
        expect((await connection.answer())?.status).toBe(200);
      }
      expect(own.receiver.counters.connectionsRefused).toBe(1);
    });
  });

  test("where none is silent, it takes the place of one whose body is not all there", async () => {
    await withStand(capped(), async (own) => {
      const slow = await Promise.all([1, 2, 3].map(() => open(own.port)));
      for (const connection of slow) connection.write(bodyToCome);
      await until(() => own.receiver.counters.inFlight === 3);
      expect((await own.send(newEvent().body)).status).toBe(200);
      await Promise.any(slow.map(({ closed }) => closed));
      await until(() => own.receiver.counters.inFlight === 2);
    });
  });

  test("no request that came whole is cut off: the new one is closed unanswered", async () => {
    await withStand({ ...capped(), secretsTiming: patientSecrets }, async (own) => {
      const forged = await Promise.all([1, 2, 3].map(() => open(own.port)));
      await whileSecretsAreLocked(async () => {
        for (const connection of forged) {
          connection.write(requestBytes(delivery(newEvent().body, { secret: "whsec_somebody-else" })));
        }
        await until(() => own.receiver.counters.inFlight === 3);
        const refused = await open(own.port);
        refused.write(health);
        expect(await refused.answer()).toBeNull();
        expect(own.receiver.counters.connectionsRefused).toBe(1);
      });
      for (const connection of forged) expect((await connection.answer())?.status).toBe(401);
    });
  });

  test("those that idle between two requests make room", async () => {
    await withStand(capped(), async (own) => {
      const idle = await Promise.all([1, 2, 3].map(() => open(own.port)));
      for (const connection of idle) {
        connection.write(health);
        expect((await connection.answer())?.status).toBe(200);
      }
      expect((await own.send(newEvent().body)).status).toBe(200);
      await Promise.all(idle.map(({ closed }) => closed));
    });
  });

  const unfinished = (path: string, more: readonly (readonly [string, string])[] = []) =>
    requestBytes({ path, headers: [["Content-Length", "70000"], ...more] });
  test.each([
    ["whose refused body is not all there, at an unknown path", unfinished("/nowhere")],
    ["whose refused body is not all there, for its size", unfinished("/webhooks")],
    [
      "whose refused body is not all there, for its encoding",
      requestBytes({
        headers: [
          ["Content-Length", "10"],
          ["Content-Encoding", "gzip"],
        ],
      }),
    ],
    [
      "whose body nobody asked for",
      requestBytes({ method: "GET", path: "/healthz", headers: [["Content-Length", "10"]] }),
    ],
    ["in the middle of the headers of its second request", `${String(health)}GET /heal`],
  ])("one makes room %s", async (_, bytes) => {
    await withStand(capped(), async (own) => {
      const held = await Promise.all([1, 2, 3].map(() => open(own.port)));
      for (const connection of held) {
        connection.write(bytes);
        expect((await connection.answer())?.status).toBeGreaterThan(0);
      }
      expect((await own.send(newEvent().body)).status).toBe(200);
      await Promise.any(held.map(({ closed }) => closed));
      expect(own.receiver.counters.connectionsRefused).toBe(1);
    });
  });

  test("one makes room whose sender does not read what it was answered", async () => {
    const { options } = capped();
    await withStand({ options: { ...options, maxConnections: 1 } }, async (own) => {
      const held = await open(own.port);
      held.socket.pause();
      drip(held, Buffer.concat(Array.from({ length: 2_000 }, () => health)), 20);
      // As soon as the buffers between them are full.
      await until(async () => {
        const connection = await open(own.port);
        connection.write(requestBytes(delivery(newEvent().body)));
        return (await connection.answer())?.status === 200;
      });
      await held.closed;
    });
  });

  test("of one address's silent ones too, the oldest makes room long before the cap is reached", async () => {
    await withStand({ options: { limits: { ...patient, answerMs: 30_000, silentPerAddress: 2 } } }, async (own) => {
      const [first, second] = [await open(own.port), await open(own.port)];
      const third = await open(own.port);
      await first.closed;
      for (const connection of [second, third]) {
        connection.write(health);
        expect((await connection.answer())?.status).toBe(200);
      }
      expect((await own.send(newEvent().body)).status).toBe(200);
    });
  });
});

describe("wrong signatures in numbers", () => {
  const forge = () => requestBytes(delivery(newEvent().body, { secret: "whsec_somebody-else" }));
  const crowded = {
    options: {
      // Time enough to open all connections before anything is sent over the first.
      limits: { ...patient, answerMs: 30_000, waitingForSecrets: 4, waitingPerAddress: 3 },
    },
    secretsTiming: patientSecrets,
  };

  test("wait for the secrets in a few places; all others are told at once to come again", async () => {
    await withStand(crowded, async (own) => {
      const forging = await Promise.all(Array.from({ length: 50 }, () => open(own.port)));
      const statuses: (number | undefined)[] = [];
      const answered = forging.map(async (each) => {
        statuses.push((await each.answer())?.status);
      });
      await whileSecretsAreLocked(async () => {
        for (const connection of forging) connection.write(forge());
        await until(() => statuses.length === 47);
        expect(new Set(statuses)).toEqual(new Set([503]));
        expect(own.receiver.counters.inFlight).toBe(3);
      });
      await Promise.all(answered);
      expect(statuses.slice(47)).toEqual([401, 401, 401]);
      // Whoever proved nothing keeps no connection.
      await Promise.all(forging.map(({ closed }) => closed));
      expect(own.receiver.counters.inFlight).toBe(0);
    });
  });

  test("hold up no event whose signature is right", async () => {
    await withStand(crowded, async (own) => {
      const forging = await Promise.all(Array.from({ length: 50 }, () => open(own.port)));
      await whileSecretsAreLocked(async () => {
        for (const connection of forging) connection.write(forge());
        expect((await own.send(newEvent().body)).status).toBe(200);
        // The three still wait: the honest one did not wait behind them.
        expect(own.receiver.counters.rejected.no_match).toBe(0);
      });
    });
  });
});

test("an address that cannot be listened on is named", async () => {
  const taken = startStand(database.url, {
    options: { host: "127.0.0.1", port: stand.port },
  });
  await expect(taken).rejects.toThrow(ConfigurationError);
  await expect(taken).rejects.toThrow(`PORT: another program listens on 127.0.0.1:${stand.port}.`);
  await expect(startStand(database.url, { options: { host: "192.0.2.1" } })).rejects.toThrow(
    "HOST: 192.0.2.1 is not an address of this machine.",
  );
});
