import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadAlertSettings } from "../../src/parts/alerts/settings.ts";
import { type Fault, faults } from "../../src/parts/sandbox/cli/gameday/faults.ts";
import { startPager } from "../../src/parts/sandbox/cli/gameday/pager.ts";
import { check } from "../../src/parts/sandbox/cli/gameday/play.ts";
import type { Stage } from "../../src/parts/sandbox/cli/gameday/stage.ts";
import { registerPlay } from "../../src/parts/sandbox/cli/gameday/gameday.ts";
import { UsageError } from "../../src/platform/errors.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { processesWith } from "../support/process-tree.ts";
import { type Program, killPrograms, runTallyhook } from "./program.ts";

// All ten are played by test/torture/gameday.test.ts: they take a minute of processor time.

afterAll(killPrograms);

/** What the game day of this process has under `.data/` of the folder in which it is started. */
const dataOf = async ({ pid }: Program): Promise<string[]> =>
  (await readdir(join(tmpdir(), ".data"))).filter((name) => name.startsWith(`gameday-${pid}-`));

test("there are ten faults, each of a rule that exists, with hints", () => {
  expect(faults).toHaveLength(10);
  const rules = Object.keys(loadAlertSettings(null).rules);
  for (const { rule, hints } of faults) {
    expect(rules).toContain(rule);
    expect(hints.length).toBeGreaterThan(0);
  }
});

test("what fails while a fault is made is its result, and ends nothing else", async () => {
  const pager = await startPager();
  try {
    const [first] = faults;
    const fault = { ...first, make: () => Promise.reject(new Error("the service is away\nat …")) };
    const stage = { pager, signal: new AbortController().signal } as unknown as Stage;
    expect(await check(stage, fault as Fault)).toMatchObject({
      alert: null,
      problem: "Error: the service is away",
    });
  } finally {
    await pager.close();
  }
});

test("a game day is refused where the settings name a service", async () => {
  const env = {
    DATABASE_URL: "embedded",
    SVC_BASE_URL: "https://api.example.com",
    SVC_API_KEY: "svc_live_sk_example",
  };
  const { out, error } = await runCommand(registerPlay, ["gameday", "--check"], { env });
  expect(out).toBe("");
  expect(error).toBeInstanceOf(UsageError);
  expect(String(error)).toContain("runs against the sandbox alone");
});

test("a team is not sent into a terminal whose commands would use a real queue or database", async () => {
  const env = { DATABASE_URL: "embedded", REDIS_URL: "redis://127.0.0.1:1" };
  const { error } = await runCommand(registerPlay, ["gameday"], { env, terminal: true });
  expect(String(error)).toMatch(/REDIS_URL is set, .* Practise in a clone without a \.env/);
});

test("a game day fires the alert of a fault, ends it by the repair, and leaves nothing behind", async () => {
  const program = runTallyhook(["gameday", "--check", "--only", "disk-nearly-full"], {});
  const { code } = await program.exited;
  expect(code, program.output()).toBe(0);
  expect(program.output()).toMatch(/disk-nearly-full +disk_space +[\d.]+ s +[\d.]+ s +ok/);
  expect(await dataOf(program)).toEqual([]);
});

test("Ctrl-C in the middle of a game day ends all of it, its server and its data", async () => {
  const program = runTallyhook(["gameday", "--check", "--only", "worker-stopped"], {});
  await program.printed("Starting PostgreSQL");
  const directories = await dataOf(program);
  program.signalGroup("SIGINT");
  await program.exited;
  expect(program.output()).toContain("Stopped by SIGINT. Nothing of the game day is left.");
  expect(await dataOf(program)).toEqual([]);
  expect(directories.flatMap((name) => processesWith(name))).toEqual([]);
});
