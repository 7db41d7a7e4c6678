import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { runScenario } from "../../../src/parts/sandbox/cli/trigger.ts";
import { scenarios } from "../../../src/parts/sandbox/cli/trigger-scenarios.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { createRuntime } from "../../../src/app/create-runtime.ts";
import { createLog } from "../../../src/platform/log.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { emptyInbox, storeRow } from "../../inbox/stored-events.ts";
import { type TestSandbox, register, startTestSandbox } from "../../sandbox/harness.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { allParts } from "../../../src/main/parts.ts";

const database = useTestDatabase();
let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
beforeEach(async () => {
  await sandbox.control("POST", "/reset");
  await emptyInbox(database.db);
});
afterAll(() => sandbox.close());

/** Triggers a customer beside this sandbox, with no patience: what it says of a change that does not come. */
async function triggered(env: Record<string, string> = {}): Promise<string> {
  const loaded = loadConfig({
    ...database.environment,
    SANDBOX_PORT: new URL(sandbox.url).port,
    ...env,
  });
  const runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name: "test" }));
  try {
    await runScenario(runtime, scenarios["customer.created"], {
      signal: new AbortController().signal,
      say: () => {},
      warn: () => {},
      limitSeconds: 0,
    });
    return "came";
  } catch (error) {
    return (error as Error).message;
  } finally {
    await runtime.close();
  }
}

const customersMade = async (): Promise<number> => (await sandbox.control("GET", "")).counts.test.customers as number;

test("says that the sandbox sends its webhooks nowhere", async () => {
  expect(await triggered()).toMatch(/The feed has no customer\.created of .* nowhere: "node/);
});

test("asks for the receiver while webhooks are not accepted", async () => {
  await register(sandbox, "http://127.0.0.1:9/webhooks");
  expect(await triggered()).toMatch(/not accepted 1 webhook of the sandbox: is it running/);
});

test("asks for the worker while events wait in the inbox", async () => {
  await register(sandbox, "http://127.0.0.1:9/webhooks");
  await storeRow(database.db, {});
  expect(await triggered()).toMatch(/1 event and 0 refetches wait in the inbox: is the worker running/);
});

test("says that no sandbox answers", async () => {
  expect(await triggered({ SANDBOX_PORT: "9" })).toMatch(/No sandbox answers at .*:9\./);
});

test("does nothing at a service of the settings, even if that is a sandbox", async () => {
  const env = { SVC_BASE_URL: sandbox.url, SVC_API_KEY: testKey };
  expect(await triggered(env)).toMatch(/runs against the sandbox alone.*Nothing was done/);
  expect(await customersMade()).toBe(0);
});
