import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { maxImageBytes } from "../../src/core/contract/resources/products.ts";
import { rounds } from "../support/rounds.ts";
import { type Json, productsOf } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
/** A reset instead of an answer is a matter of chance. */
const tries = rounds(5, 20, 50);
const largeImage = Buffer.alloc(maxImageBytes + 200_000, 0x61);
const largeJson = Buffer.alloc(3_000_000, 0x61);

const headersOf = () => ({
  authorization: `Bearer ${testKey}`,
  "x-svc-idempotency-key": crypto.randomUUID(),
});

const doors = async () => {
  const [product] = await productsOf(sandbox);
  return [
    { path: `/v1/products/${product.id}/images`, type: "image/png", sent: largeImage, status: 400 },
    { path: "/v1/customers", type: "application/json", sent: largeJson, status: 400 },
    { path: "/capture", type: "application/json", sent: largeJson, status: 400 },
    { path: "/v1/nothing", type: "application/json", sent: largeJson, status: 404 },
  ];
};

test("a body that is too large is refused in words, however often fetch sends it", async () => {
  const [images] = await doors();
  for (let i = 0; i < tries; i++) {
    const form = new FormData();
    form.append("image", new Blob([largeImage]), "large.png");
    // A form costs the client much more time than bare bytes.
    const body = i % 10 === 0 ? form : largeImage;
    const response = await fetch(`${sandbox.url}${images?.path}`, {
      method: "POST",
      headers: headersOf(),
      body,
    });
    const answer = (await response.json()) as Json;
    expect([response.status, answer.error.code]).toEqual([400, "validation_error"]);
  }
});

/** Writes all it has before it reads anything, as simple clients do, and gives back all that came until the end. */
async function writeThenRead(head: string, bodyParts: Iterable<Buffer>): Promise<string> {
  const { hostname, port } = new URL(sandbox.url);
  const socket = connect(Number(port), hostname);
  socket.pause();
  await once(socket, "connect");
  socket.write(head);
  for (const part of bodyParts) {
    if (!socket.write(part)) await once(socket, "drain");
  }
  let answer = "";
  for await (const text of socket.setEncoding("utf8")) {
    answer += text as string;
    // A whole answer: its body ends with the error's closing braces.
    if (/\r\n\r\n.*\}\}$/s.test(answer)) break;
  }
  return answer;
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let from = 0; from < body.length; from += 65_536) {
    yield body.subarray(from, from + 65_536);
  }
}

function* chunks(body: Buffer): Generator<Buffer> {
  const lineEnd = Buffer.from("\r\n");
  for (const piece of pieces(body)) {
    yield Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, lineEnd]);
  }
  yield Buffer.from("0\r\n\r\n");
}

test("whoever writes a whole body before reading gets the refusal, not a reset", async () => {
  const all = await doors();
  for (let i = 0; i < tries; i++) {
    const door = all[i % all.length];
    if (door === undefined) throw new Error("no door");
    const { path, type, sent, status } = door;
    const isChunked = i % 3 === 0;
    const length = isChunked ? "transfer-encoding: chunked" : `content-length: ${sent.length}`;
    const own = Object.entries({ ...headersOf(), host: "localhost", "content-type": type });
    const lines = own.map(([name, value]) => `${name}: ${value}`);
    const head = [`POST ${path} HTTP/1.1`, ...lines, length, "", ""].join("\r\n");
    const answer = await writeThenRead(head, isChunked ? chunks(sent) : pieces(sent));
    expect(answer.split(" ")[1], `${path} ${length}`).toBe(String(status));
    expect(answer).toContain('"request_id"');
  }
});

test("the connection of a refused body serves the next request", async () => {
  const own = Object.entries({ ...headersOf(), host: "localhost", "content-type": "image/png" });
  const lines = own.map(([name, value]) => `${name}: ${value}`);
  const [images] = await doors();
  const length = `content-length: ${largeImage.length}`;
  const head = [`POST ${images?.path} HTTP/1.1`, ...lines, length, "", ""].join("\r\n");
  const { hostname, port } = new URL(sandbox.url);
  const socket = connect(Number(port), hostname);
  socket.write(head);
  socket.write(largeImage);
  socket.write("GET /v1/nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  let answers = "";
  for await (const part of socket.setEncoding("utf8")) answers += part as string;
  expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 400", "HTTP/1.1 404"]);
});

// As many simple clients do (Python's urllib), which send all of it before they read.
test("a sender that wants its connection closed gets the refusal of 40 MB, and then the end", async () => {
  const large = Buffer.alloc(40_000_000, 0x61);
  for (const [path, status] of [
    ["/v1/customers", "400"],
    ["/v1/nothing", "404"],
  ] as const) {
    const own = Object.entries({ ...headersOf(), host: "localhost", connection: "close" });
    const lines = own.map(([name, value]) => `${name}: ${value}`);
    const head = [`POST ${path} HTTP/1.1`, ...lines, `content-length: ${large.length}`, "", ""];
    const { hostname, port } = new URL(sandbox.url);
    const socket = connect(Number(port), hostname);
    socket.pause();
    await once(socket, "connect");
    socket.write(head.join("\r\n"));
    for (const part of pieces(large)) {
      if (!socket.write(part)) await once(socket, "drain");
    }
    let answer = "";
    for await (const text of socket.setEncoding("utf8")) answer += text as string;
    expect(answer.split(" ")[1], path).toBe(status);
    expect(answer).toContain('"request_id"');
  }
});
