import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { assertDirect, assertReachable } from "../../src/platform/postgres/reachable.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { type PgBouncer, pgbouncerInstalled, startPgBouncer } from "../support/pgbouncer.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { audit, faultless } from "./audit.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { createHistory } from "./history.ts";
import { storedAreSettled } from "./inbox-progress.ts";
import { killPrograms, runTallyhook } from "./program.ts";
import { type SenderCounts, startSender } from "./sender.ts";

let database: TestDatabase;
let poolers: PgBouncer[] = [];
beforeEach(async () => {
  database = await createTestDatabase({ poolMax: 4 });
});
async function start(...settings: Parameters<typeof startPgBouncer>): Promise<PgBouncer> {
  const pooler = await startPgBouncer(...settings);
  poolers.push(pooler);
  return pooler;
}
afterEach(async () => {
  await killPrograms();
  await Promise.all(poolers.map((pooler) => pooler.stop()));
  poolers = [];
  await database.destroy();
});

/** Sends events to a receiver, and has a worker apply them: both processes of their own. */
async function sendThrough(
  deployment: Deployment,
  { seed, events, eventsPerSecond }: { seed: string; events: number; eventsPerSecond: number },
): Promise<Readonly<SenderCounts>> {
  const migrating = runTallyhook(["migrate"], deployment.environment);
  expect(await migrating.exited).toMatchObject({ code: 0 });
  const history = createHistory(seededRandom(seed));
  const programs = [await deployment.startReceiver(), await deployment.startWorker()];
  const sender = startSender(
    { history, random: seededRandom(seed) },
    { url: deployment.webhooksUrl, secret: webhookSecret, eventsPerSecond },
  );
  await sender.whenAcknowledged(events);
  await sender.finish();
  await storedAreSettled(database.db);
  expect(await audit(database.db, sender.acknowledged, history.model)).toEqual(faultless);
  for (const program of programs) {
    expect(program.output()).not.toMatch(/"level":"(error|warn)"/);
    await program.stop();
  }
  return sender.counts;
}

/** The settings of the example for operators, but for who may log in and where. */
async function documentedSettings(): Promise<Record<string, string>> {
  const page = await readFile(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const [, lines = ""] = /\[pgbouncer\]\n(.*?)\n```/s.exec(page) ?? [];
  const settings = Object.fromEntries(lines.split("\n").map((line) => line.split(" = ")));
  for (const own of ["listen_addr", "listen_port", "auth_type", "auth_file"]) delete settings[own];
  return settings;
}

const refusal = async (attempt: Promise<void>): Promise<string> => {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConfigurationError);
  return (error as Error).message;
};

describe.runIf(pgbouncerInstalled)("behind PgBouncer", () => {
  test("events are acknowledged and applied in its session mode, with the settings of the role", async () => {
    const first = await start(database.url, "session");
    const message = await assertReachable(first.url).catch((error: unknown) => String(error));
    await withServer(database.url, async (client) => {
      for (const statement of String(message).split("\n").slice(1)) await client.query(statement);
    });
    const pooler = await start(database.url, "session");
    const deployment = await layOutDeployment({ databaseUrl: pooler.url });
    await sendThrough(deployment, { seed: "session", events: 200, eventsPerSecond: 50 });
  });

  test("in its transaction mode 500 events under load meet no 503, and each is applied at its first attempt", async () => {
    const documented = await documentedSettings();
    expect(documented).toMatchObject({ pool_mode: "transaction", default_pool_size: "10" });
    const settings = { ...documented, ignore_startup_parameters: "" };
    const pooler = await start(database.url, "transaction", settings);
    const deployment = await layOutDeployment({
      databaseUrl: pooler.url,
      databaseDirectUrl: database.url,
    });
    const sent = await sendThrough(deployment, {
      seed: "transaction",
      events: 500,
      eventsPerSecond: 250,
    });
    expect(sent).toMatchObject({ refused503: 0, brokenConnections: 0 });
    const doctor = runTallyhook(["doctor"], deployment.environment);
    expect((await doctor.exited).signal).toBeNull();
    expect(doctor.output()).toMatch(/ok +pooler +DATABASE_DIRECT_URL reaches the database/);
  });

  test("its transaction mode stops a start that has no connection past it, with what to set", async () => {
    const pooler = await start(database.url, "transaction");
    const message = await refusal(assertReachable(pooler.url));
    expect(message).toMatch(/^DATABASE_URL: a pooler .* pools by transaction/);
    expect(message).toContain("Set DATABASE_DIRECT_URL to a URL of the same database");
    expect(message).toContain("PgBouncer: pool_mode = session");
  });

  test("its statement mode, which allows no transactions, stops every start", async () => {
    const pooler = await start(database.url, "statement");
    expect(await refusal(assertReachable(pooler.url))).toMatch(/pools by transaction/);
    await expect(assertReachable(pooler.url, { pooling: "transaction" })).rejects.toThrow(
      /a pooler on .* refuses the connection \(08P01\)/,
    );
  });

  test("the connection past the pooler has to pass it, and to reach the same database", async () => {
    const pooler = await start(database.url, "transaction");
    await expect(assertDirect(database.url, pooler.url)).resolves.toBeUndefined();
    expect(await refusal(assertDirect(pooler.url, pooler.url))).toMatch(
      /^DATABASE_DIRECT_URL: a pooler .* pools by transaction.* past the pooler/,
    );
    const elsewhere = databaseUrl(database.url, "postgres");
    expect(await refusal(assertDirect(elsewhere, pooler.url))).toMatch(
      /^DATABASE_DIRECT_URL and DATABASE_URL reach two databases: postgres on .*, and tallyhook_test_/,
    );
  });

  test("roles without the history's triggers are refused through it as well", async () => {
    const name = new URL(database.url).pathname.slice(1);
    const set = (what: string) => withServer(database.url, (client) => client.query(`alter database ${name} ${what}`));
    await set("set session_replication_role = replica");
    const pooler = await start(database.url, "transaction");
    const attempt = assertReachable(pooler.url, { pooling: "transaction" });
    expect(await refusal(attempt)).toContain("session_replication_role");
    await set("reset session_replication_role");
  });
});
