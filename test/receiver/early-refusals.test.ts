import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { freePort } from "../support/free-port.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type Stand, startStand } from "./receiver-stand.ts";

const database = useTestDatabase();
let stand: Stand;
beforeAll(async () => {
  stand = await startStand(database.url, { options: { maxHeldBodyBytes: 200_000 } });
});
afterAll(() => stand.close());

const large = Buffer.alloc(8 * 1024 * 1024, 0x61);

interface Sent {
  version?: string;
  method?: string;
  path?: string;
  headers?: string[];
}

/** Writes all of 8 MiB before it reads anything, as simple clients do; null where no answer could be read. */
async function writeThenRead({
  version = "1.1",
  method = "POST",
  path = "/webhooks",
  headers = [],
}: Sent): Promise<number | null> {
  const socket = connect({ port: stand.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.pause();
  await once(socket, "connect");
  const lines = [`Host: x`, `Content-Length: ${large.length}`, ...headers];
  socket.write(`${method} ${path} HTTP/${version}\r\n${lines.join("\r\n")}\r\n\r\n`);
  socket.end(large);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  socket.resume();
  await new Promise((resolve) => socket.once("close", resolve));
  const [, status] = /^HTTP\/1\.1 (\d+) /.exec(text) ?? [];
  return status === undefined ? null : Number(status);
}

const rounds = 8;
const closes = { version: "1.1", headers: ["Connection: close"] };
const kinds: [string, Sent, number][] = [
  ["HTTP/1.0", { version: "1.0" }, 413],
  ["Connection: close", closes, 413],
  ["a content encoding", { ...closes, headers: [...closes.headers, "Content-Encoding: gzip"] }, 415],
  ["an unknown path", { ...closes, path: "/nothing" }, 404],
  ["another method", { ...closes, method: "PUT" }, 405],
  ["a target that is none", { ...closes, path: "nothing" }, 400],
];

describe("an early refusal is read by a sender that is still sending", () => {
  test.each(kinds)("%s", async (_name, sent, status) => {
    const answers = [];
    for (let n = 0; n < rounds; n++) answers.push(await writeThenRead(sent));
    expect(answers).toEqual(Array.from({ length: rounds }, () => status));
  });

  test("bytes that are no HTTP, after headers that are too long", async () => {
    const answers = [];
    for (let n = 0; n < rounds; n++) {
      answers.push(await writeThenRead({ ...closes, headers: [`X: ${"a".repeat(200_000)}`] }));
    }
    expect(answers).toEqual(Array.from({ length: rounds }, () => 431));
  });
});

test("a sender that never ends its body is let go, and counted once", async () => {
  const own = await startStand(database.url, {
    options: { limits: { headersMs: 300, requestMs: 300 } },
  });
  const socket = connect({ port: own.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.resume().write(`POST /webhooks HTTP/1.0\r\nHost: x\r\nContent-Length: ${large.length}\r\n\r\nabc`);
  await once(socket, "end");
  const reset = new Promise((resolve) => socket.once("close", resolve));
  const writing = setInterval(() => socket.write("x"), 20);
  await reset;
  clearInterval(writing);
  expect(own.receiver.counters.rejected).toMatchObject({ too_large: 1, slow: 0 });
  await own.close();
});

const nginx = (() => {
  try {
    return execFileSync("sh", ["-c", "PATH=$PATH:/usr/sbin command -v nginx"]).toString().trim();
  } catch {
    return null;
  }
})();

describe.skipIf(nginx === null)("behind nginx as it comes", () => {
  const folder = mkdtempSync(join(tmpdir(), "tallyhook-nginx-"));
  let port = 0;
  let running: ChildProcess;
  beforeAll(async () => {
    port = await freePort();
    const file = join(folder, "nginx.conf");
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    );
    writeFileSync(
      file,
      `daemon off; ${process.getuid?.() === 0 ? "user root;" : ""} pid ${folder}/pid; error_log ${folder}/error.log; worker_processes 1;
       events {} http { access_log off; ${temporary.join(" ")} client_max_body_size 100m;
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${stand.port}; } } }`,
    );
    running = spawn(nginx ?? "", ["-p", folder, "-c", file], { stdio: "ignore" });
    await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/healthz`), { timeout: 20_000 });
  });
  afterAll(async () => {
    running.kill("SIGTERM");
    await once(running, "exit");
    rmSync(folder, { recursive: true });
  });

  test("8 MiB get 413 each time, and never 502", async () => {
    const answers = [];
    for (let n = 0; n < rounds; n++) {
      const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, {
        method: "POST",
        body: large,
      });
      answers.push(answer.status);
      await answer.text();
    }
    expect(answers).toEqual(Array.from({ length: rounds }, () => 413));
  });
});
