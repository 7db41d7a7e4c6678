import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runScenario } from "../../src/parts/sandbox/cli/trigger.ts";
import { scenarios } from "../../src/parts/sandbox/cli/trigger-scenarios.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import { changeKinds } from "../../src/core/mirror/changes/kinds.ts";
import { createLog } from "../../src/platform/log.ts";
import { makeDataDir } from "../support/data-directory.ts";
import { freePort } from "../support/free-port.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { killPrograms, runTallyhook } from "./program.ts";
import { allParts } from "../../src/main/parts.ts";

const database = useTestDatabase();
let dataDir: string;
let environment: Record<string, string>;
let runtime: Runtime;

beforeAll(async () => {
  dataDir = await makeDataDir();
  environment = {
    ...database.environment,
    TALLYHOOK_DATA_DIR: dataDir,
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
    HOST: "127.0.0.1",
    PORT: String(await freePort()),
    ADMIN_PORT: "0",
    SANDBOX_PORT: String(await freePort()),
    DASHBOARD_PORT: "0",
    LOG_LEVEL: "warn",
  };
  await runTallyhook(["start"], environment).printed("Stop with Ctrl-C");
  runtime = createRuntime(allParts, loadConfig(environment), createLog({ level: "silent", name: "test" }));
});
afterAll(async () => {
  await runtime?.close();
  await killPrograms();
  await rm(dataDir, { recursive: true, force: true });
});

test.each(changeKinds)("the sandbox brings %s about, and the feed tells of it", async (kind) => {
  const steps = await runScenario(runtime, scenarios[kind], {
    signal: new AbortController().signal,
    say: () => {},
    warn: () => {},
  });
  expect(steps.at(-1)?.change).toMatchObject({ kind, isSuperseded: false });
});

test("trigger order.refunded --amount refunds that part, and prints both changes", async () => {
  const program = runTallyhook(["trigger", "order.refunded", "--amount", "6100", "--json"], environment);
  expect(await program.exited, program.output()).toEqual({ code: 0, signal: null });
  const { steps } = JSON.parse(program.output()) as { steps: { change: object }[] };
  expect(steps.map(({ change }) => change)).toMatchObject([
    { kind: "order.paid" },
    { kind: "order.refunded", amount: 6100, to_status: "partially_refunded" },
  ]);
});
