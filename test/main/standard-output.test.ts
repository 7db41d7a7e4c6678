import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { text } from "node:stream/consumers";
import { expect, inject, test } from "vitest";

const launcher = inject("program");
const help = [launcher, "--help"];
const runScript = (program: string) =>
  spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: inject("image"),
    stdio: ["ignore", "pipe", "pipe"],
  });

test("all that was printed reaches a reader who takes his time, before the process ends", async () => {
  const bytes = 1_000_000;
  const child = runScript(`
    import { guardStandardOutput } from "./dist/src/main/main.js";
    const output = guardStandardOutput(process.stdout, process.stderr);
    process.stdout.write("x".repeat(${bytes}));
    process.stderr.write("printed");
    await output.flush();
    process.exit(output.problem() === null ? 0 : 1);`);
  const exited = once(child, "exit");
  await once(child.stderr, "data");
  expect(await text(child.stdout)).toHaveLength(bytes);
  expect(await exited).toEqual([0, null]);
});

test("a reader who has seen enough is no failure, and no stack trace", async () => {
  const child = spawn(process.execPath, help, { stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  child.stdout.destroy();
  expect(await text(child.stderr)).toBe("");
  expect(await exited).toEqual([0, null]);
});

test.skipIf(!existsSync("/dev/full"))("a full disk is told in words, with exit code 2", async () => {
  const child = spawn(process.execPath, help, {
    stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
  });
  const exited = once(child, "exit");
  expect(child.stderr === null ? null : await text(child.stderr)).toBe(
    "tallyhook: Standard output cannot be written (the disk is full), so the output is incomplete. Make room, or write it elsewhere.\n",
  );
  expect(await exited).toEqual([2, null]);
});

test("what a command that prints has to log stands beside what it prints, not in it", async () => {
  const child = runScript(`
    import { createContext } from "./dist/src/app/cli/context.js";
    import { loadConfig } from "./dist/src/app/config/config.js";
    const context = createContext("1.2.3", []);
    await context.withRuntime(
      "report",
      async ({ log }) => {
        context.stdout.write("a,b\\n");
        log.warn("asked again");
      },
      { logLevel: "warn", loaded: loadConfig({}) },
    );`);
  const [printed, logged] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(printed).toBe("a,b\n");
  expect(JSON.parse(logged)).toMatchObject({ level: "warn", name: "report", msg: "asked again" });
});
