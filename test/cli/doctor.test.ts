import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { registerDoctor } from "../../src/cli/doctor.ts";
import type { Finding } from "../../src/cli/doctor/finding.ts";
import { migrateQueueSchema } from "../../src/queue/backend.ts";
import { createTestDatabase } from "../support/database.ts";
import type { TestDatabase } from "../support/database.ts";
import { freePort } from "../support/free-port.ts";
import { redisAvailable, startRedis } from "../support/redis.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { emptyInbox, storeRow } from "../inbox/stored-events.ts";
import { runCommand } from "./command-line.ts";

const secret = "whsec_a-secret-that-is-long-enough";
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await migrateQueueSchema(database.url);
});
beforeEach(() => emptyInbox(database.db));
// The command tells of failures by the exit code of its process, which here is the one of the tests.
afterEach(() => {
  process.exitCode = undefined;
});
afterAll(() => database.destroy());

const environment = (env: Record<string, string>) => ({
  DATABASE_URL: database.url,
  SVC_WEBHOOK_SECRETS: secret,
  TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
  ...env,
});

async function examine(env: Record<string, string> = {}) {
  const run = await runCommand(registerDoctor, ["doctor", "--json"], { env: environment(env) });
  expect(run.error).toBeNull();
  const { exitCode } = process;
  const { healthy, findings } = JSON.parse(run.out) as { healthy: boolean; findings: Finding[] };
  const of = (name: string) => findings.find(({ check }) => check === name);
  return { healthy, findings, of, exitCode, out: run.out };
}

describe("tallyhook doctor", () => {
  test("finds nothing amiss in a deployment that has what it needs", async () => {
    const { healthy, findings, exitCode } = await examine();
    expect(findings.filter(({ status }) => status === "failed")).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining(["configuration", "database", "inbox", "queue", "signing secrets"]),
    );
    expect(healthy).toBe(true);
    expect(exitCode).toBeUndefined();
  });

  test("warns of a database whose commits a crash can take", async () => {
    // The server of the tests runs without fsync.
    expect((await examine()).of("durability")).toMatchObject({
      status: "warning",
      detail: expect.stringContaining("fsync is off") as string,
      remedy: expect.stringContaining("fsync = on") as string,
    });
  });

  test("prints a line for each check, and no secret", async () => {
    const { out, error } = await runCommand(registerDoctor, ["doctor"], { env: environment({}) });
    expect(error).toBeNull();
    for (const name of ["database", "inbox", "queue", "service"]) expect(out).toContain(name);
    expect(out).not.toContain(secret);
    expect(out).not.toContain(new URL(database.url).password);
  });

  test("warns of dead and failed events, and says how to look at them", async () => {
    await storeRow(database.db, { state: "failed", dueInSeconds: 60 });
    expect((await examine()).of("inbox")).toMatchObject({
      status: "warning",
      remedy: expect.stringContaining("--state failed") as string,
    });
    await storeRow(database.db, { state: "dead" });
    const { of, healthy } = await examine();
    expect(of("inbox")).toMatchObject({
      status: "warning",
      detail: expect.stringContaining("dead 1") as string,
      remedy: expect.stringContaining("--state dead") as string,
    });
    expect(healthy).toBe(true);
  });

  test("a database that is away fails, what needs it is skipped, and the exit code is 2", async () => {
    const url = new URL(database.url);
    url.port = String(await freePort());
    const { of, healthy, exitCode, out } = await examine({ DATABASE_URL: url.href });
    expect(of("database")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("DATABASE_URL") as string,
    });
    for (const name of ["durability", "inbox", "queue", "signing secrets"]) {
      expect(of(name)).toMatchObject({ status: "skipped" });
    }
    expect(of("service")).toBeDefined();
    expect(healthy).toBe(false);
    expect(exitCode).toBe(2);
    expect(out).not.toContain(url.password);
  });

  test("a database without our tables fails, and the remedy is to migrate", async () => {
    const name = `${inject("templateDatabase")}_bare`;
    const serverUrl = inject("serverUrl");
    await withServer(serverUrl, (client) => client.query(`CREATE DATABASE ${name}`));
    const { of, exitCode } = await examine({ DATABASE_URL: databaseUrl(serverUrl, name) });
    expect(of("database")).toMatchObject({
      status: "failed",
      remedy: expect.stringContaining("migrate") as string,
    });
    expect(exitCode).toBe(2);
  });

  test("warns of a database that a newer version migrated", async () => {
    await database.db("tallyhook_migrations").insert({ name: "9999_later", batch: 99 });
    try {
      expect((await examine()).of("database")).toMatchObject({
        status: "warning",
        detail: "was migrated by a newer version (it has 9999_later)",
      });
    } finally {
      await database.db("tallyhook_migrations").where({ name: "9999_later" }).delete();
    }
  });

  test("a service that is away fails, and the clock is not judged", async () => {
    const { of, exitCode } = await examine({
      SVC_BASE_URL: `http://127.0.0.1:${await freePort()}`,
      SVC_API_KEY: "svc_test_sk_of_a_test_only",
    });
    expect(of("service")).toMatchObject({ status: "failed" });
    expect(of("clock")).toMatchObject({ status: "skipped" });
    expect(exitCode).toBe(2);
  });

  test.skipIf(!redisAvailable)(
    "a Redis that answers is in order, one that is away fails",
    async () => {
      const redis = await startRedis();
      try {
        expect((await examine({ REDIS_URL: redis.url })).of("queue")).toMatchObject({
          status: "ok",
        });
      } finally {
        await redis.stop();
      }
      const { of, exitCode } = await examine({ REDIS_URL: redis.url });
      expect(of("queue")).toMatchObject({
        status: "failed",
        detail: expect.stringContaining("redis") as string,
      });
      expect(exitCode).toBe(2);
    },
  );
});

describe("the exit code of the program", () => {
  async function run(args: string[], env: Record<string, string> = {}) {
    const child = spawn(process.execPath, [inject("program"), ...args], {
      env: { PATH: process.env["PATH"] ?? "", ...environment(env) },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    const [code] = (await once(child, "close")) as [number | null];
    return { code, err };
  }

  test.concurrent.each([
    [64, "a replay of nothing", ["events", "replay"], {}, "--dead"],
    [64, "an event that is not there", ["events", "show", "evt_none"], {}, "evt_none"],
    [2, "a setting that is wrong", ["doctor"], { PORT: "70000" }, "PORT"],
  ])("is %i for %s, which it names", async (code, _, args, env, named) => {
    const ended = await run(args, env);
    expect(ended.code).toBe(code);
    expect(ended.err).toContain(named);
  });
});
