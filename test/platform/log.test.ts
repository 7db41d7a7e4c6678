import { expect, test } from "vitest";
import { type LogLevel, createLog } from "../../src/platform/log.ts";
import { secretShapes } from "../../src/core/contract/secret-shapes.ts";
import { registerSecretShapes } from "../../src/platform/redaction.ts";

registerSecretShapes(secretShapes);

/** A log and the lines that came out of it, parsed. */
function makeLog(level: LogLevel = "info") {
  const lines: string[] = [];
  const log = createLog({
    level,
    name: "test",
    destination: { write: (line) => lines.push(line) },
  });
  return { log, lines };
}

test("a line is JSON with time, level, process and message", () => {
  const { log, lines } = makeLog();
  log.info({ eventId: "evt_1" }, "applied");
  expect(JSON.parse(lines[0] ?? "")).toEqual({
    level: "info",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    name: "test",
    pid: process.pid,
    eventId: "evt_1",
    msg: "applied",
  });
});

test("what is below the level is not written", () => {
  const { log, lines } = makeLog("warn");
  log.info("quiet");
  log.warn("loud");
  expect(lines).toHaveLength(1);
});

test.each([
  [{ password: "hunter2" }],
  [{ request: { authorization: "Bearer hunter2" } }],
  [{ endpoint: { answer: { signing_secret: "hunter2" } } }],
  [{ url: "postgres://tallyhook:hunter2@127.0.0.1:5432/x" }],
  [{ url: "redis://:hunter2@127.0.0.1" }],
  [{ err: new Error("cannot reach postgres://u:hunter2@host/db") }],
  [{ header: "Bearer svc_live_sk_hunter2" }],
  [{ secrets: ["whsec_hunter2"] }],
  [{ list: ["whsec_hunter2="] }],
  [{ url: "redis://:12@hunter2@127.0.0.1" }],
])("a secret is struck out of %j", (fields) => {
  const { log, lines } = makeLog();
  log.child(fields).info(fields, "careless whsec_hunter2");
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain("hunter2");
  expect(() => JSON.parse(lines[0] ?? "")).not.toThrow();
});

test("the rows, values and bytes that errors quote are left out, also of one among several", () => {
  const { log, lines } = makeLog("debug");
  const refusal = Object.assign(new Error("violates a check constraint"), {
    code: "23514",
    detail: "Failing row contains (cus_1, person@example.com).",
    where: 'JSON data, line 1: {"email":"person@example.com"',
    internalQuery: "select 'person@example.com'",
  });
  const err = new AggregateError([refusal], "all failed", { cause: refusal });
  log.child({ err: refusal }).warn({ err }, "not stored");
  log.error(Object.assign(new Error("outer"), { inner: refusal }));
  expect(refusal.detail).toContain("cus_1");
  expect(lines.join("")).not.toContain("person@example.com");
  expect(lines.join("")).toContain("23514");
  log.debug({ err: Object.assign(new Error("Parse Error"), { rawPacket: Buffer.from("x") }) });
  expect(lines.join("")).not.toContain("rawPacket");
});

test("what an error carries beside its message is not logged: commands with passwords, rows with values", () => {
  const { log, lines } = makeLog();
  const refused = Object.assign(new Error("WRONGPASS"), {
    command: { name: "hello", args: ["3", "AUTH", "default", "hunter2"] },
  });
  const violated = Object.assign(new Error('Key "(email)=(hunter2)" is there'), {
    name: "DatabaseError",
    severity: "ERROR",
    code: "23505",
    detail: "Failing row contains (hunter2).",
    where: "COPY customers, line 1: hunter2",
    table: "customers",
    constraint: "customers_pkey",
  });
  const outer = new Error("the queue does not answer", { cause: refused });
  for (const err of [refused, violated, outer, new AggregateError([refused], "both")]) {
    log.warn({ err }, "it failed");
  }
  log.warn({ err: "hunter3" }, "no error at all");
  expect(lines.join("")).not.toContain("hunter2");
  const [first, second, third, fourth, fifth] = lines.map(
    (line) => (JSON.parse(line) as { err: Record<string, unknown> }).err,
  );
  expect(first).toMatchObject({ type: "Error", message: "WRONGPASS" });
  expect(first?.["stack"]).toContain("log.test.ts");
  expect(second).toMatchObject({
    type: "DatabaseError",
    message: "database error 23505",
    code: "23505",
    table: "customers",
    constraint: "customers_pkey",
  });
  expect(third).toMatchObject({ cause: { message: "WRONGPASS" } });
  expect(fourth).toMatchObject({ errors: [{ message: "WRONGPASS" }] });
  expect(fifth).toBe("hunter3");
});

test("what the database says of itself stays readable, without the statement that Knex puts before it", () => {
  const { log, lines } = makeLog();
  const message = 'select $1 from x - relation "x" does not exist';
  const error = Object.assign(new Error(message), { severity: "ERROR", code: "42P01" });
  log.error({ err: error }, "it failed");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    err: { message: 'database error 42P01: relation "x" does not exist' },
  });
});

test("what cannot be read is said to be so, and the line is written all the same", () => {
  const { log, lines } = makeLog();
  const trap = (): never => {
    throw new Error("a trap");
  };
  const hostile = [
    Object.defineProperty(new Error("x"), "message", { get: trap }),
    new Proxy(new Error("x"), { getPrototypeOf: trap }),
    new Error("outer", { cause: Object.defineProperty(new Error("x"), "stack", { get: trap }) }),
  ];
  for (const err of hostile) log.warn({ err, change: 7 }, "it failed");
  const written = lines.map((line) => JSON.parse(line) as { err: unknown });
  const unreadable = "[an error that cannot be read]";
  expect(written).toMatchObject([
    { err: unreadable, change: 7, msg: "it failed" },
    { err: unreadable },
    { err: { message: "outer", cause: unreadable } },
  ]);
});
