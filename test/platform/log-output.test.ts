import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { expect, inject, test } from "vitest";

/** Logs in a process of its own; `say` tells us of it, `asked` resolves when we close its input. */
const runLogger = (program: string, redirection = "") => {
  const script = `
    import { once } from "node:events";
    import { setImmediate as nextRound } from "node:timers/promises";
    import { createLog } from "./dist/src/platform/log.js";
    const log = createLog({ level: "info", name: "test" });
    const say = (text) => void process.stderr.write(text);
    const asked = once(process.stdin.resume(), "end");
    async function logMuch() {
      for (let n = 0; n < 20_000; n++) {
        log.info({ n, pad: "é".repeat(500) }, "one of many");
        if (n % 100 === 0) await nextRound();
      }
    }
    ${program}`;
  const node = `exec "$0" --input-type=module --eval "$1" ${redirection}`;
  return spawn("/bin/sh", ["-c", node, process.execPath, script], {
    cwd: inject("image"),
    stdio: ["pipe", "pipe", "pipe"],
  });
};

test("a reader who stands still holds up nothing; later he gets whole lines, and how many were left out", async () => {
  const child = runLogger(`await logMuch(); say("logged"); await asked; log.info("the last one");`);
  const exited = once(child, "exit");
  expect(String(...(await once(child.stderr, "data")))).toBe("logged");
  let bytes = 0;
  // What waits is written on by then, and one line more finds room.
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > 1024 * 1024) child.stdin.end();
  });
  const lines = (await text(child.stdout))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { n?: number; msg: string; leftOut?: number });
  expect(await exited).toEqual([0, null]);
  const numbers = lines.flatMap(({ n }) => (n === undefined ? [] : [n]));
  const leftOut = lines.flatMap((line) => line.leftOut ?? []);
  expect(numbers[0]).toBe(0);
  expect(leftOut).toHaveLength(1);
  expect(numbers.length + (leftOut[0] ?? 0)).toBe(20_000);
  expect(lines.map(({ msg }) => msg)).toContain("the last one");
});

test("a reader who stands still does not hold up the end", async () => {
  const child = runLogger(`await logMuch(); process.exit(0);`);
  expect(await once(child, "exit")).toEqual([0, null]);
  child.stdout.destroy();
});

test("a reader who goes away costs the lines alone", async () => {
  const child = runLogger(`say("here"); await asked; await logMuch(); say("still here");`);
  const exited = once(child, "exit");
  await once(child.stderr, "data");
  child.stdout.destroy();
  child.stdin.end();
  expect(await text(child.stderr)).toBe("still here");
  expect(await exited).toEqual([0, null]);
});

test("what was logged right before the end is written", async () => {
  const child = runLogger(`log.info("a"); log.fatal("b"); process.exit(3);`);
  const exited = once(child, "exit");
  const lines = (await text(child.stdout)).trimEnd().split("\n");
  // A thread may still be writing the first one, and be late.
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg).sort()).toEqual(["a", "b"]);
  expect(await exited).toEqual([3, null]);
});

test.skipIf(!existsSync("/dev/full"))("a full disk holds up neither work nor end", async () => {
  const child = runLogger(`await logMuch(); say("still here");`, "> /dev/full");
  child.stdin.end();
  const exited = once(child, "exit");
  expect(await text(child.stderr)).toBe("still here");
  expect(await exited).toEqual([0, null]);
});
