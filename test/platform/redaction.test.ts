import { describe, expect, it, test } from "vitest";
import { secretShapes } from "../../src/core/contract/secret-shapes.ts";
import { createEncryption } from "../../src/platform/encryption.ts";
import { TallyhookError } from "../../src/platform/errors.ts";
import { createLog, lineLimits } from "../../src/platform/log.ts";
import {
  redact,
  foreignText,
  registerSecret,
  registerSecretShapes,
  redactSecrets,
} from "../../src/platform/redaction.ts";
import { cpuMs } from "../support/cpu-time.ts";

registerSecretShapes(secretShapes);

const base64 = (text: string): string => Buffer.from(text).toString("base64");

describe("a secret that this process holds", () => {
  const password = "k9/T+plain&odd=?7";
  registerSecret(`postgres://app:${encodeURIComponent(password)}@db.internal/shop`);

  it.each([
    ["as it is", password],
    ["in JSON inside a text", JSON.stringify({ password })],
    ["percent-encoded", encodeURIComponent(password)],
    ["percent-encoded in small letters", "k9%2fT%2bplain%26odd%3d%3f7"],
    ["in hex", Buffer.from(password).toString("hex")],
    ["in Basic authentication", base64(`a:${password}`)],
    ["in Basic authentication of a longer name", base64(`ab:${password}`)],
    ["in Basic authentication of a name that is longer still", base64(`abc:${password}:more`)],
    ["in base64 for URLs", Buffer.from(`app:${password}`).toString("base64url")],
    ["in base64 that is percent-encoded", encodeURIComponent(base64(`app:${password}`))],
  ])("is struck out wherever it stands: %s", (_, form) => {
    const struck = redactSecrets(`before ${form} after`);
    expect(struck).toContain("[redacted]");
    expect(struck).not.toContain(form.slice(8, 18));
    expect(struck).toMatch(/^before .* after$/);
  });

  it.each([
    ["of several servers", "redis://app:k9-of-servers@h1:6379,h2:6379/0", ["k9-of-servers"]],
    ["of one node", "rediss+cluster://:k8%2Bcluster@h1", ["k8+cluster", "k8%2Bcluster"]],
    [
      "of the Sentinels and their servers",
      "redis+sentinel://u:k7@data,1@s1:26379,[::1]:26379/mymaster/2?sentinel_password=k6%2Fsentinel",
      ["k7@data,1", "k6/sentinel", "k6%2Fsentinel"],
    ],
    ["among the parameters", "postgres://h/shop?user=app&password=k5-query-42", ["k5-query-42"]],
  ])("is struck out where it is the password %s", (_, url, forms) => {
    registerSecret(url);
    for (const form of forms) expect(redactSecrets(`x ${form} y`)).toBe("x [redacted] y");
    expect(redactSecrets("h1:6379 s1:26379 mymaster shop")).toBe("h1:6379 s1:26379 mymaster shop");
  });

  it("is known as soon as it is concealed, encrypted or decrypted", () => {
    redact({ one: "held-by-config-1", many: ["held-by-config-2"], none: null });
    const key = "1f".repeat(32);
    const other = createEncryption({ current: key }).encrypt("whsec_c2lnbmluZ3NlY3JldA==");
    expect(other.keyId).toBeTypeOf("string");
    const texts = ["held-by-config-1", "held-by-config-2", key, "c2lnbmluZ3NlY3JldA=="];
    for (const text of texts) expect(redactSecrets(`x ${text} y`)).toBe("x [redacted] y");
  });

  it("is no word that anybody may use, and no part of its own URL", () => {
    registerSecret("postgres://shopkeeper:shopkeeper@shopkeeper/shopkeeper");
    registerSecret("tallyhook");
    registerSecret("short");
    const text = "the tallyhook of the shopkeeper is short";
    expect(redactSecrets(text)).toBe(text);
  });

  it("may be the address of a page, and is never that of a database", () => {
    registerSecret("https://hooks.chat.example/services/T0/B0/x1y2z3");
    registerSecret("redis://cache.internal:6379");
    expect(redactSecrets("POST /services/T0/B0/x1y2z3 to redis://cache.internal:6379")).toBe(
      "POST [redacted] to redis://cache.internal:6379",
    );
  });

  it("is struck out of the messages of errors that people read", () => {
    registerSecret("live-api-key-0001");
    const error = new TallyhookError("the service echoed live-api-key-0001");
    expect(error.message).toBe("the service echoed [redacted]");
    expect(error.stack).not.toContain("live-api-key-0001");
  });
});

test.each([
  ["postgres://u:pa/ss@h/d and more", "postgres://u:[redacted]@h/d and more"],
  ["redis://:1@2@h, smtp://a:b@c", "redis://:[redacted]@h, smtp://a:[redacted]@c"],
  [
    "redis+sentinel://:pa@ss@a:1,b:2/m/0?sentinel_password=word&x=1",
    "redis+sentinel://:[redacted]@a:1,b:2/m/0?sentinel_password=[redacted]&x=1",
  ],
  ["https://h:443/a and https://h/b", "https://h:443/a and https://h/b"],
  ["Authorization: Bearer abcdefgh123", "Authorization: Bearer [redacted]"],
  [`proxy said Basic ${base64("user:word")}`, "proxy said Basic [redacted]"],
  ["Basic authentication is off", "Basic authentication is off"],
  ["xsvc_test_sk_abc_1", "xsvc_test_sk_[redacted]"],
  ["postgres://user:password@host/shop", "postgres://user:password@host/shop"],
  ["http://h/a:b@c", "http://h/a:b@c"],
  ["GET http://h/?to=postgres://u:p@d/s end", "GET http://h/?to=postgres://u:[redacted]@d/s end"],
  ["http://h/http://i/redis://:p@j", "http://h/http://i/redis://:[redacted]@j"],
  ["http://h:80/a://b:c@d x://e:f@g", "http://h:[redacted]@d x://e:[redacted]@g"],
])("of %s stays %s", (text, struck) => {
  expect(redactSecrets(text)).toBe(struck);
  expect(redactSecrets(struck)).toBe(struck);
});

test("what a server answered is one line, cut after its secrets are struck out", () => {
  const text = `${"x".repeat(90)}\r\nBearer svc_live_sk_${"k".repeat(40)} rest`;
  expect(foreignText(text, 110)).toBe(`${"x".repeat(90)} Bearer [redacted] r…`);
  expect(foreignText("a😀", 2)).toBe("a…");
});

describe("the time of a line", () => {
  const log = createLog({ level: "info", name: "test", destination: { write: () => undefined } });
  const hostile: [name: string, text: (n: number) => string][] = [
    ["words that could begin a URL", (n) => "a.".repeat(n / 2)],
    ["schemes", (n) => "a://".repeat(n / 4)],
    ["schemes with colons", (n) => "a://:".repeat(n / 5)],
    ["schemes with slashes before an at sign", (n) => `${"a:///".repeat(n / 5)}@`],
    ["at signs", (n) => `x://${"@".repeat(n)}`],
    ["halves of keys", (n) => "svc_live_sk_".repeat(n / 12)],
    ["Bearers", (n) => "Bearer  ".repeat(n / 8)],
    ["parameters", (n) => "?password".repeat(n / 9)],
    ["Basics", (n) => "Basic aaaaaaaa".repeat(n / 14)],
    ["blanks", (n) => `Basic${" ".repeat(n)}`],
    ["slashes", (n) => "/".repeat(n)],
    ["lines of a stack", (n) => "\n    at ".repeat(n / 8)],
  ];

  it.each(hostile)("grows as the text does: %s", (_, text) => {
    const time = (n: number, samples: number): number => {
      const given = text(n);
      const err = new Error(given);
      const run = (): void => log.warn({ given, err, nested: { [given]: given } }, given);
      return Math.min(...Array.from({ length: samples }, () => cpuMs(run)));
    };
    time(10_000, 5);
    const [small, large] = [time(50_000, 5), time(400_000, 3)];
    // Eight times the text. Quadratic would be 64 times.
    expect(large / Math.max(small, 0.5)).toBeLessThan(24);
  });
});

describe("a line of the log", () => {
  function lineOf(fields: object, message: string): Record<string, unknown> {
    const lines: string[] = [];
    const destination = { write: (line: string) => lines.push(line) };
    createLog({ level: "info", name: "test", destination }).info(fields, message);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.endsWith("}\n")).toBe(true);
    return JSON.parse(lines[0] ?? "") as Record<string, unknown>;
  }

  it("has texts, depth, breadth and values that are bounded, and says what is left out", () => {
    let deep: unknown = "end";
    for (let n = 0; n < 1_000; n++) deep = { deep };
    const wide = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, n]));
    const many = Array.from({ length: 400 }, () => Array.from({ length: 400 }, () => 1));
    const long = "y".repeat(100_000);
    const line = lineOf({ deep, wide, many, long, [long]: 1 }, long);
    expect(JSON.stringify(line).length).toBeLessThan(20_000);
    expect(line["msg"]).toBe(`${"y".repeat(lineLimits.characters)}… [96000 characters more]`);
    expect(line["wide"]).toMatchObject({ k49: 49, "…": "[250 more]" });
    expect(JSON.stringify(line["deep"])).toContain("[too deep]");
    expect(JSON.stringify(line["many"])).toContain("more]");
  });

  it("tells of many errors in one the first, and of causes that go in a circle a few", () => {
    const circle = new Error("round");
    circle.cause = circle;
    const many = new AggregateError(Array.from({ length: 5_000 }, (_, n) => new Error(`part ${n}`, { cause: circle })));
    const line = JSON.stringify(lineOf({ err: many, other: [many] }, "many"));
    expect(line).toContain("part 0");
    expect(line.length).toBeLessThan(60_000);
  });

  it("shows no secret under any spelling of its key, and the ids of secrets", () => {
    const fields = {
      "X-Api-Key": "hunter2",
      headers: [{ "Proxy-Authorization": ["hunter2"] }],
      payment_token: { nested: "hunter2" },
      secretId: "sec_1",
      secrets: null,
    };
    const line = lineOf(fields, "x");
    expect(JSON.stringify(line)).not.toContain("hunter2");
    expect(line).toMatchObject({ secretId: "sec_1", secrets: null });
  });

  it("shows of an error under any key no more than under err", () => {
    const refused = Object.assign(new Error("WRONGPASS"), { command: { args: ["hunter2"] } });
    const line = lineOf({ reason: refused, reasons: [refused] }, "x");
    expect(JSON.stringify(line)).not.toContain("hunter2");
    expect(line).toMatchObject({ reason: { message: "WRONGPASS" } });
  });
});
