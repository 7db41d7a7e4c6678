import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { type RawAnswer, openConnection, requestBytes } from "./raw-http.ts";
import { type Stand, expectRefusal, delivery, newEvent, signatureOf, startStand } from "./receiver-stand.ts";

let database: TestDatabase;
let stand: Stand;
beforeAll(async () => {
  database = await createTestDatabase();
  stand = await startStand(database.url);
});
afterAll(async () => {
  await stand.close();
  await database.destroy();
});

const sha256 = (bytes: string | Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const object = (fields: Record<string, unknown>) => newEvent({ data: { object: fields } }).body;

describe("authentic bytes are stored as they came and acknowledged, whatever they hold", () => {
  const numberId = newEvent({ id: 17 }).body;
  const longId = `evt_${"9".repeat(10_000)}`;
  const nulId = `evt_\0_${process.pid}`;
  const bom = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(newEvent().body)]);
  const notUtf8 = Buffer.concat([Buffer.from('{"id":"evt_ff","x":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  const nul = Buffer.from('{"id":"evt_nul","x":"\0"}');

  test.each<[string, Buffer | string, string?]>([
    ["a byte order mark", bom],
    ["the byte 0xFF", notUtf8, sha256(notUtf8)],
    ["a NUL", nul, sha256(nul)],
    ["nothing", "", sha256("")],
    ["one byte", "x", sha256("x")],
    ["broken JSON", '{"id":"evt_broken","type":', sha256('{"id":"evt_broken","type":')],
    ["text that is no object", '"evt"', sha256('"evt"')],
    ["no id", '{"type":"order.created"}', sha256('{"type":"order.created"}')],
    ["an id of 10 kB", JSON.stringify({ id: longId }), sha256(longId)],
    ["an id with a NUL", JSON.stringify({ id: nulId }), sha256(nulId)],
    ["an id that is a number", numberId, sha256(numberId)],
    ["an id with a lone surrogate", '{"id":"evt_\\udfff"}', sha256("evt_\ufffd")],
    ["__proto__ and constructor", '{"id":"evt_p","__proto__":{"id":"x"},"constructor":{"prototype":{"a":1}}}', "evt_p"],
    ["__proto__ as the whole", '{"__proto__":{"id":"evt_inherited"}}', sha256('{"__proto__":{"id":"evt_inherited"}}')],
    ["amounts as floats", object({ id: "ord_1", total: 10.5 })],
    ["negative amounts", object({ id: "ord_1", total: -1 })],
    ["amounts as text", object({ id: "ord_1", total: "1000" })],
    ["amounts above 2^53", '{"id":"evt_big","data":{"object":{"id":"ord_1","total":9007199254740993}}}', "evt_big"],
    ["an unknown currency", object({ id: "ord_1", currency: "XXQ" })],
    ["an unknown status", object({ id: "ord_1", status: "levitating" })],
    ["an unknown type", newEvent({ type: "moon.landed" }).body],
    ["a type that is no text", newEvent({ type: 7 }).body],
    ["an unknown api_version", newEvent({ api_version: "2099-12-31" }).body],
    ["an object never seen", object({ id: `ord_${process.pid}_never` })],
    ["null where an object should be", newEvent({ data: null }).body],
    ["null as the object", newEvent({ data: { object: null } }).body],
    ["lone surrogates", newEvent({ note: "\ud800" }).body],
    ["escaped NUL in data", newEvent({ note: "\0" }).body],
    ["a time that is none", newEvent({ created_at: "once upon a time" }).body],
    ["nesting without end", `{"id":"evt_deep","x":${"[".repeat(20_000)}${"]".repeat(20_000)}}`, "evt_deep"],
    ["one byte below the limit", `"${"x".repeat(65_533)}"`],
    ["just the limit", `"${"x".repeat(65_534)}"`],
  ])("%s", async (_, body, id) => {
    const answer = await stand.send(body);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const reply = JSON.parse(answer.body) as { id: string };
    expect(reply).toEqual({ received: true, id: id ?? reply.id, duplicate: false });
    const rows = await stand.stored(body);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ event_id: reply.id, state: "received", deliveries: 1 });
  });

  test("every column of a usual event is filled, and who verified it", async () => {
    const { id, body } = newEvent();
    await stand.send(body);
    const [row] = await stand.stored(body);
    expect(row).toMatchObject({
      event_id: id,
      type: "order.created",
      api_version: "2026-01-01",
      event_created_at: new Date("2026-03-01T10:00:00.123Z"),
    });
    expect(row?.secret_id).toMatch(/^env:[0-9a-f]{10}$/);
  });

  test("chunked bodies are put together", async () => {
    const { id, body } = newEvent();
    const chunked = [...body.matchAll(/.{1,7}/gs)].map(([part]) => `${part.length.toString(16)}\r\n${part}\r\n`);
    const signed = signatureOf(Buffer.from(body));
    const answer = await stand.request({
      headers: [
        ["Transfer-Encoding", "chunked"],
        ["SVC-Signature", signed],
      ],
      body: Buffer.from(`${chunked.join("")}0\r\n\r\n`),
    });
    expect(JSON.parse(answer.body)).toEqual({ received: true, id, duplicate: false });
    expect(await stand.stored(body)).toHaveLength(1);
  });
});

test("ids that no column should hold do not disturb their neighbours in the batch", async () => {
  const bad = [
    JSON.stringify({ id: "x".repeat(10_000), n: 2 }),
    JSON.stringify({ id: "a\0b", n: 2 }),
    '{"id":"\\ud800","n":2}',
    JSON.stringify({
      id: "fine",
      type: "t\0",
      api_version: "\ud800",
      created_at: "0000-00-00T00:00:00Z",
    }),
  ];
  const bodies = Array.from({ length: 60 }, (_, n) => bad[n] ?? newEvent().body);
  const answers = await Promise.all(bodies.map((body) => stand.send(body)));
  expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 200));
  for (const body of bodies) expect(await stand.stored(body)).toHaveLength(1);
});

describe("repeats", () => {
  test("200 copies at once: one is new, and all are counted", async () => {
    const { id, body } = newEvent();
    const answers = await Promise.all(Array.from({ length: 200 }, () => stand.send(body)));
    const replies = answers.map((answer) => JSON.parse(answer.body) as { duplicate: boolean });
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(replies.filter(({ duplicate }) => !duplicate)).toEqual([{ received: true, id, duplicate: false }]);
    // Repeats are counted after the answer.
    await eventually("all are counted", async () => {
      const rows = await stand.stored(body);
      return rows.length === 1 && rows[0]?.deliveries === 200;
    });
  });

  test("one after the other", async () => {
    const { id, body } = newEvent();
    expect(JSON.parse((await stand.send(body)).body)).toEqual({
      received: true,
      id,
      duplicate: false,
    });
    expect(JSON.parse((await stand.send(body)).body)).toEqual({
      received: true,
      id,
      duplicate: true,
    });
  });

  test("one id with two bodies: both are stored", async () => {
    const { id } = newEvent();
    const bodies = [1, 2].map((n) => JSON.stringify({ id, n }));
    for (const body of bodies) {
      const answer = await stand.send(body);
      expect(JSON.parse(answer.body)).toEqual({ received: true, id, duplicate: false });
      expect(await stand.stored(body)).toHaveLength(1);
    }
  });
});

describe("what is refused for its form, before any work", () => {
  test("a body one byte over the limit", async () => {
    const body = "x".repeat(65_537);
    expectRefusal(await stand.send(body), 413, "body_too_large");
    expect(await stand.stored(body)).toEqual([]);
  });

  test("a body far over the limit: the sender who writes on still reads the answer", async () => {
    const answer = await stand.send(Buffer.alloc(8_000_000));
    expectRefusal(answer, 413, "body_too_large");
  });

  test.each(["gzip", "br", "GZIP", "identity, gzip", "x"])("Content-Encoding: %s", async (encoding) => {
    const body = gzipSync(newEvent().body);
    const answer = await stand.send(body, { headers: [["Content-Encoding", encoding]] });
    expectRefusal(answer, 415, "unsupported_content_encoding");
    expect(await stand.stored(body)).toEqual([]);
  });

  test.each(["identity", "Identity", ""])("but not Content-Encoding: '%s'", async (encoding) => {
    const { body } = newEvent();
    const answer = await stand.send(body, { headers: [["Content-Encoding", encoding]] });
    expect(answer.status).toBe(200);
  });

  test.each(["/webhooks/", "/WebHooks", "/webhooks?from=svc", "http://tallyhook.test/webhooks"])(
    "but not the path %s",
    async (path) => {
      const { body } = newEvent();
      expect((await stand.request({ ...delivery(body), path })).status).toBe(200);
    },
  );

  test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])("%s", async (method) => {
    const answer = await stand.request({ method, body: Buffer.from("{}") });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
    if (method !== "HEAD") expectRefusal(answer, 405, "method_not_allowed");
  });

  test("POST to a path that only shows something", async () => {
    const answer = await stand.request({ path: "/healthz", body: Buffer.from("{}") });
    expectRefusal(answer, 405, "method_not_allowed");
    expect(answer.headers.get("allow")).toBe("HEAD, GET");
  });

  test.each(["/", "/webhook", "/webhooks//", "/webhooks/x", "/metrics", "/WEBHOOKS/..", "//webhooks", "/%00"])(
    "the path %s",
    async (path) => {
      const answer = await stand.request({ path, body: Buffer.from("{}") });
      expectRefusal(answer, 404, "resource_not_found");
    },
  );

  test.each([
    ["no HTTP at all", "HELLO\r\n\r\n"],
    ["two lengths", "POST /webhooks HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"],
    [
      "a length and chunks",
      "POST /webhooks HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a length that is none", "POST /webhooks HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"],
    ["a line break in a header", "POST /webhooks HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"],
    ["an address that is none", "POST http://[::1:bad/webhooks HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["no host", "POST /webhooks HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"],
  ])("%s", async (_, bytes) => {
    expectRefusal(await lastAnswer(bytes), 400, "invalid_request");
  });

  test("an expectation that nobody knows", async () => {
    const bytes = requestBytes({ headers: [["Expect", "fish"]], body: Buffer.from("{}") });
    expectRefusal(await lastAnswer(bytes), 417, "expectation_failed");
  });

  test("CONNECT", async () => {
    const answer = await lastAnswer("CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n");
    expectRefusal(answer, 405, "method_not_allowed");
    expect(answer.headers.get("allow")).toBe("POST");
  });

  /** Of a connection that is closed with it. */
  async function lastAnswer(bytes: string | Buffer): Promise<RawAnswer> {
    const connection = await openConnection(stand.port);
    connection.write(bytes);
    const answer = await connection.answer();
    if (answer === null) throw new Error("no answer");
    await connection.closed;
    return answer;
  }
});

test("the numbers say what happened", () => {
  const { accepted, duplicate, rejected, unavailable, failed, inFlight } = stand.receiver.counters;
  expect(accepted).toBeGreaterThan(100);
  expect(duplicate).toBe(200);
  expect(rejected).toMatchObject({
    too_large: 2,
    content_encoding: 5,
    method_not_allowed: 9,
    not_found: 8,
    malformed_request: 8,
  });
  expect([unavailable, failed, inFlight]).toEqual([0, 0, 0]);
});
