import type { Command } from "commander";
import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { CliContext } from "../../src/app/cli/context.ts";
import { registerClose } from "../../src/parts/reports/cli/close.ts";
import { registerEndpoint } from "../../src/parts/endpoint/cli/endpoint.ts";
import { runReceiver } from "../../src/app/processes/run-receiver.ts";
import { registerReconcile } from "../../src/parts/reconcile/cli/reconcile.ts";
import { registerSecrets } from "../../src/main/cli/secrets.ts";
import { registerUsers } from "../../src/main/cli/users.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import { createSignIn } from "../../src/app/people/sign-in.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { allParts } from "../../src/main/parts.ts";

// The database is lost without a backup, or the key that its secrets are encrypted with: what docs/backup.md says to do
// then, at a service that goes on as if nothing had happened. About three seconds of processor time.

const quiet = createLog({ level: "silent", name: "test" });

let sandbox: TestSandbox;
let database: TestDatabase;
let db: Knex;
let environment: Record<string, string>;

beforeAll(async () => {
  sandbox = await startTestSandbox("loss");
});
afterAll(() => sandbox.close());
beforeEach(async () => {
  database = await createTestDatabase();
  ({ db } = database);
  await migrateQueueSchema(database.url);
  const port = await freePort();
  environment = {
    DATABASE_URL: database.url,
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
    SVC_BASE_URL: sandbox.url,
    SVC_API_KEY: testKey,
    HOST: "127.0.0.1",
    PORT: String(port),
    ADMIN_PORT: "0",
    PUBLIC_URL: `http://127.0.0.1:${port}`,
    RECONCILE_GRACE_SECONDS: "0",
  };
  return () => database.destroy();
});

async function tallyhook(
  register: (program: Command, context: CliContext) => void | Promise<void>,
  ...args: string[]
): Promise<string> {
  const { out, err, error } = await runCommand(register, args, { env: environment });
  expect(error, err).toBeNull();
  return out;
}

async function refusal(...args: string[]): Promise<string> {
  return String((await runCommand(registerEndpoint, args, { env: environment })).error);
}

/** The webhooks that a receiver with these settings takes until the work is done. */
async function receiving<T>(work: () => Promise<T>): Promise<T> {
  const runtime: Runtime = createRuntime(allParts, loadConfig(environment), quiet);
  try {
    await runReceiver(runtime);
    return await work();
  } finally {
    await runtime.close();
  }
}

const arrived = async (): Promise<number> => (await db("inbox.receipts").select("seq")).length;

const email = "ada@shop.example";
const password = "seven green kettles";

/** With the right password, and a code that is wrong. */
const signIn = async (given = password): Promise<string> => {
  const runtime = createRuntime(allParts, loadConfig(environment), quiet);
  try {
    const result = await createSignIn({
      db,
      encryption: () => runtime.encryption(),
      clock: wallClock,
    }).signIn({
      email,
      password: given,
      code: "000000",
      address: "127.0.0.1",
      userAgent: "",
      replaces: null,
    });
    return result.ok ? "signed in" : result.reason;
  } finally {
    await runtime.close();
  }
};

const newCustomer = (): Promise<Json> =>
  sandbox.ok("POST", "/v1/customers", { email: `${crypto.randomUUID()}@shop.example` });

test("after the loss of the database without a backup, webhooks and the mirror are back, and what is open is told once more", async () => {
  // What the service still has of the life before: an endpoint whose secret is lost, and a history.
  const { id } = await sandbox.ok("POST", "/v1/webhook_endpoints", {
    url: `${environment["PUBLIC_URL"]}/webhooks`,
    enabled_events: ["*"],
  });
  await sandbox.control("POST", "/traffic", {
    orders: 30,
    subscriptions: 3,
    days: 80,
    past: true,
    chargebacks: 3,
    refunds: 3,
    declines: 2,
  });

  expect(await refusal("endpoint", "register")).toContain(`is registered already, as ${id}`);
  await tallyhook(registerEndpoint, "endpoint", "rotate", id);
  await tallyhook(registerReconcile, "import");

  // Told once more is what is open; of what was over, of refunds and of drift nobody hears.
  const told = await db("alerts.outbox as o")
    .join("alerts.alerts as a", "a.id", "o.alert_id")
    .orderBy("a.key")
    .pluck<string[]>("a.key");
  const open = await db("mirror.chargebacks").where({ state: "opened" }).pluck<string[]>("key");
  expect(open).not.toEqual([]);
  expect(told.filter((key) => key.startsWith("chargeback:"))).toEqual(open.map((key) => `chargeback:${key}`).sort());
  expect(told.filter((key) => /^(drift|refund|identity)/.test(key))).toEqual([]);
  // Nothing is taken for broken since its history is gone.
  expect(await db("reconcile.findings").pluck("key")).toEqual([]);
  expect(await tallyhook(registerClose, "close", "verify")).toContain("No month is closed");

  await receiving(async () => {
    await newCustomer();
    await eventually("a webhook arrives", async () => (await arrived()) > 0);
  });
});

test("after the loss of the encryption key no webhook is taken until the secret is new, and codes of an app are asked for again", async () => {
  await tallyhook(registerEndpoint, "endpoint", "register");
  const added = await runCommand(registerUsers, ["users", "add", email, "--role", "admin"], {
    env: environment,
    stdin: `${password}\n`,
  });
  expect(added.error).toBeNull();
  await tallyhook(registerUsers, "users", "totp", email);
  const [former] = await db("receiver.secrets").pluck<string[]>("id");
  expect(await signIn()).toBe("wrong");

  environment["TALLYHOOK_ENCRYPTION_KEY"] = "cd".repeat(32);
  expect(await tallyhook(registerSecrets, "secrets", "list")).toMatch(/db:\w+ +unusable/);
  await expect(receiving(newCustomer)).rejects.toThrow(/db:\w+ cannot be decrypted with TALLYHOOK_ENCRYPTION_KEY/);
  await expect(signIn()).rejects.toThrow("Set TALLYHOOK_ENCRYPTION_KEY");
  // Strangers do not learn by it who has an account.
  expect(await signIn("a guess")).toBe("wrong");

  await tallyhook(registerEndpoint, "endpoint", "rotate");
  await receiving(async () => {
    await newCustomer();
    await eventually("a webhook arrives", async () => (await arrived()) > 0);
  });
  await tallyhook(registerUsers, "users", "totp", email);
  expect(await signIn()).toBe("wrong");

  // The service keeps a rotation open for a day: within it, another endpoint takes its place.
  environment["TALLYHOOK_ENCRYPTION_KEY"] = "ef".repeat(32);
  expect(await refusal("endpoint", "rotate")).toMatch(/is pending until .*endpoint remove/s);
  const [{ id }] = (await sandbox.ok("GET", "/v1/webhook_endpoints")).data;
  await tallyhook(registerEndpoint, "endpoint", "remove", id, "--yes");
  await tallyhook(registerEndpoint, "endpoint", "register");
  const before = await arrived();
  await receiving(async () => {
    await newCustomer();
    await eventually("a webhook arrives", async () => (await arrived()) > before);
  });
  expect(await db("receiver.secrets").where({ id: former })).toHaveLength(1);
});
