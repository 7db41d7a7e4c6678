import { once } from "node:events";
import { spawn } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningDispatch } from "../../src/parts/delivery/dispatch/start-dispatch.ts";
import { untilRegistered } from "../dispatch/dispatch-stand.ts";
import { openForward, runsOf, secret, settingsFor } from "../forward/forward-stand.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { compile } from "../support/compile.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { projectRoot } from "../support/project-root.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { codeBlocksOf } from "./code-blocks.ts";

const database = useTestDatabase();
const closing: (() => Promise<unknown>)[] = [];
let url: string;
/** What the page's subscriber has kept: ids, and how many bytes. */
const kept: { id: string; bytes: number }[] = [];
let typeErrors: string;

/** The page's subscriber as a program of its own. */
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "tallyhook-subscriber-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  const [block] = codeBlocksOf("docs/forwarding.md").filter(({ path }) => path === "subscriber.ts");
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(join(folder, "subscriber.ts"), block?.text ?? "");
  await symlink(join(projectRoot, "node_modules"), join(folder, "node_modules"));
  const options = ["--strict", "--module", "nodenext", "--target", "es2023", "--types", "node"];
  typeErrors = await compile([...options, "subscriber.ts"], folder);
  const port = await freePort();
  url = `http://127.0.0.1:${port}/`;
  const program = spawn(process.execPath, ["subscriber.js"], {
    cwd: folder,
    env: { TALLYHOOK_SECRET: secret, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  closing.push(async () => {
    program.kill();
    if (program.exitCode === null) await once(program, "exit");
  });
  createInterface(program.stdout).on("line", (line) => kept.push(JSON.parse(line)));
  await eventually("it listens", () => fetch(url).then(Boolean, () => false));
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

test("the page's subscriber compiles in strict mode", () => expect(typeErrors).toBe(""));

test("it takes every webhook that the receiver takes: the largest, an empty one, no JSON, no text", async () => {
  const { db } = database;
  const forward: RunningDispatch = openForward(database.url, settingsFor(url, { send: "webhooks", from: "beginning" }));
  closing.push(() => forward.close());
  await untilRegistered(db, "forward:crm");
  const bodies = {
    largest: Buffer.from(JSON.stringify({ text: "a".repeat(1_048_576 - '{"text":""}'.length) })),
    empty: Buffer.alloc(0),
    broken: Buffer.from('{"id":'),
    binary: Buffer.from([0xff, 0xfe, 0x00, 0xc3]),
  };
  for (const [eventId, raw] of Object.entries(bodies)) {
    await storeRow(db, { eventId, raw, state: "dead" });
  }
  await eventually("each is taken", () => kept.length >= 4);
  expect(Object.fromEntries(kept.map(({ id, bytes }) => [id, bytes]))).toEqual({
    largest: 1_048_576,
    empty: 0,
    broken: 6,
    binary: 4,
  });
  await eventually("each is done", async () => (await runsOf(db)).length === 0);
});

test("it refuses what is not signed, and what announces no length or too great a one", async () => {
  const before = kept.length;
  const signed = { "webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" };
  async function answerTo(headers: Record<string, string>, body: string): Promise<number> {
    const sent = request(url, { method: "POST", headers: { ...signed, ...headers }, agent: false });
    sent.write(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    sent.destroy();
    return response.statusCode ?? 0;
  }
  expect(await answerTo({ "content-length": "2" }, "{}")).toBe(401);
  expect(await answerTo({ "transfer-encoding": "chunked" }, "{")).toBe(413);
  expect(await answerTo({ "content-length": String(18 * 1024 * 1024) }, "{")).toBe(413);
  expect(kept).toHaveLength(before);
});
