import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { openConnection, requestBytes } from "./raw-http.ts";
import {
  type Stand,
  delivery,
  expectRefusal,
  newEvent,
  nowSeconds,
  secret,
  signatureOf,
  startStand,
} from "./receiver-stand.ts";

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

const hmac = (text: string | Buffer, t: number | string = nowSeconds()) =>
  createHmac("sha256", secret).update(`${t}.`).update(text).digest("hex");
const t = nowSeconds();

describe("a signature that does not hold is refused, all alike, and nothing is stored", () => {
  const body = newEvent().body;
  const bytes = Buffer.from(body);
  const right = signatureOf(bytes, { t });
  const hex = hmac(body, t);
  const many = Array.from({ length: 17 }, () => `v1=${"0".repeat(64)}`).join(",");

  test.each<[string, [string, string][], string]>([
    ["none", [], "missing_header"],
    [
      "two",
      [
        ["SVC-Signature", right],
        ["SVC-Signature", right],
      ],
      "duplicate_header",
    ],
    [
      "two, in other letters",
      [
        ["svc-signature", right],
        ["SVC-SIGNATURE", right],
      ],
      "duplicate_header",
    ],
    ["an empty one", [["SVC-Signature", ""]], "malformed_header"],
    ["garbage", [["SVC-Signature", "garbage"]], "malformed_header"],
    ["an empty v1", [["SVC-Signature", `t=${t},v1=`]], "malformed_header"],
    ["no v1", [["SVC-Signature", `t=${t}`]], "malformed_header"],
    ["no t", [["SVC-Signature", `v1=${hex}`]], "malformed_header"],
    ["two t", [["SVC-Signature", `t=${t},${right}`]], "malformed_header"],
    ["half a v1", [["SVC-Signature", `t=${t},v1=${hex.slice(0, 32)}`]], "malformed_header"],
    ["a v1 that is too long", [["SVC-Signature", `${right}00`]], "malformed_header"],
    ["upper-case hex", [["SVC-Signature", `t=${t},v1=${hex.toUpperCase()}`]], "malformed_header"],
    ["letters that are not ASCII", [["SVC-Signature", `t=${t},v1=ÄÖÜ${hex.slice(3)}`]], "malformed_header"],
    ["more v1 than a rotation needs", [["SVC-Signature", `${right},${many}`]], "malformed_header"],
    ["t that is no number", [["SVC-Signature", `t=now,v1=${hmac(body, "now")}`]], "malformed_header"],
    ["t that only begins as one", [["SVC-Signature", `t=123abc,v1=${hmac(body, "123abc")}`]], "malformed_header"],
    ["a negative t", [["SVC-Signature", `t=-1,v1=${hmac(body, "-1")}`]], "malformed_header"],
    ["one over other bytes", [["SVC-Signature", signatureOf(Buffer.from("{}"), { t })]], "no_match"],
    ["one over another time", [["SVC-Signature", `t=${t + 1},v1=${hex}`]], "no_match"],
    [
      "one of another secret",
      [["SVC-Signature", signatureOf(bytes, { t, secret: "whsec_another-secret" })]],
      "no_match",
    ],
    [
      "one without the time in it",
      [["SVC-Signature", `t=${t},v1=${createHmac("sha256", secret).update(body).digest("hex")}`]],
      "no_match",
    ],
    ["a time in the far past", [["SVC-Signature", signatureOf(bytes, { t: 1 })]], "stale"],
    ["a time just too old", [["SVC-Signature", signatureOf(bytes, { t: t - 302 })]], "stale"],
    ["a time in the far future", [["SVC-Signature", signatureOf(bytes, { t: 99_999_999_999 })]], "stale"],
  ])("%s", async (_, headers, reason) => {
    const before = { ...stand.receiver.counters.rejected };
    const answer = await stand.request({ headers, body: bytes });
    expectRefusal(answer, 401, "webhook_signature_failed");
    const { rejected } = stand.receiver.counters;
    expect(rejected).toEqual({ ...before, [reason]: (before[reason as "stale"] ?? 0) + 1 });
    expect(await stand.stored(body)).toEqual([]);
  });

  test("a thousand v1 are headers too long to be read", async () => {
    const before = stand.receiver.counters.rejected.malformed_request;
    const parts = Array.from({ length: 1_000 }, () => `v1=${hex}`).join(",");
    const answer = await stand.send(body, { signature: `t=${t},${parts}` });
    expectRefusal(answer, 431, "headers_too_large");
    expect(stand.receiver.counters.rejected.malformed_request).toBe(before + 1);
    expect(await stand.stored(body)).toEqual([]);
  });

  test("the answers differ in their request id only", async () => {
    const answers = await Promise.all([
      stand.request({ body: bytes }),
      stand.send(body, { signature: "garbage" }),
      stand.send(body, { secret: "whsec_another-secret" }),
      stand.send(body, { t: 1 }),
    ]);
    const shapes = answers.map(({ status, headers, body: text }) => {
      const id = headers.get("x-request-id") ?? "";
      const rest = [...headers].filter(([name]) => name !== "date");
      return JSON.stringify({ status, rest, text }).replaceAll(id, "<id>");
    });
    expect(new Set(shapes).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => headers.get("x-request-id"))).size).toBe(4);
  });

  test("the log names the reason of a stale one and of others, seldom, and no secret or body", () => {
    const log = stand.logged();
    expect(log).toContain("signature_stale");
    expect(log.match(/a signature did not verify/g)).toHaveLength(1);
    expect(log).not.toContain(secret);
    expect(log).not.toContain("ord_1");
  });
});

describe("a signature that holds is taken", () => {
  test.each<[string, (body: string) => string]>([
    ["near the past end of the window", (body) => signatureOf(Buffer.from(body), { t: nowSeconds() - 295 })],
    ["near the future end", (body) => signatureOf(Buffer.from(body), { t: nowSeconds() + 295 })],
    ["with other signatures beside it", (body) => `t=${t},v1=${"0".repeat(64)},v1=${hmac(body, t)},v0=x`],
    ["in any order of parts", (body) => `v1=${hmac(body, t)},t=${t}`],
    ["with spaces after the commas", (body) => `t=${t}, v1=${hmac(body, t)}`],
  ])("%s", async (_, sign) => {
    const { id, body } = newEvent();
    const answer = await stand.send(body, { signature: sign(body) });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toEqual({ received: true, id, duplicate: false });
    expect(await stand.stored(body)).toHaveLength(1);
  });

  test("whatever the letters of the header's name", async () => {
    const { body } = newEvent();
    const headers = [["svc-SIGNATURE", signatureOf(Buffer.from(body))]] as const;
    expect((await stand.request({ headers, body: Buffer.from(body) })).status).toBe(200);
  });

  test("after a refusal too, over another connection: whoever proved nothing keeps none", async () => {
    const { body } = newEvent();
    const connection = await openConnection(stand.port);
    connection.write(requestBytes(delivery(body, { secret: "whsec_somebody-else-entirely" })));
    const refused = await connection.answer();
    expect([refused?.status, refused?.headers.get("connection")]).toEqual([401, "close"]);
    await connection.closed;
    expect((await stand.send(body)).status).toBe(200);
  });
});

test("without any secret nothing verifies, not even what is signed with nothing", async () => {
  const bare = await startStand(database.url, { environment: [] });
  const { body } = newEvent();
  const empty = await bare.send(body, { secret: "" });
  expectRefusal(empty, 401, "webhook_signature_failed");
  expect(bare.receiver.counters.rejected.no_secret).toBe(1);
  expect(await bare.stored(body)).toEqual([]);
  await bare.close();
});

test("the other schemes of the design verify as well", async () => {
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const encoded = `whsec_${key.toString("base64")}`;
  const hexStand = await startStand(database.url, {
    options: { signature: { scheme: "hex", toleranceSeconds: 300 } },
  });
  const standard = await startStand(database.url, {
    environment: [encoded],
    options: { signature: { scheme: "standard-webhooks", toleranceSeconds: 300 } },
  });
  const { body } = newEvent();
  const plain = createHmac("sha256", secret).update(body).digest("hex");
  expect((await hexStand.send(body, { signature: plain })).status).toBe(200);

  const time = String(nowSeconds());
  const signed = createHmac("sha256", key).update(`msg_1.${time}.${body}`).digest("base64");
  const headers = [
    ["webhook-id", "msg_1"],
    ["webhook-timestamp", time],
    ["webhook-signature", `v1,${signed}`],
  ] as const;
  const answer = await standard.request({ headers, body: Buffer.from(body) });
  expect(JSON.parse(answer.body)).toMatchObject({ received: true, duplicate: true });
  await Promise.all([hexStand.close(), standard.close()]);
});
