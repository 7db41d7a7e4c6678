import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { ConfigurationError } from "../../../src/platform/errors.ts";
import { migrateSchema } from "../../../src/main/schema.ts";
import { createDatabase, createPool } from "../../../src/platform/postgres/pool.ts";
import { assertReachable } from "../../../src/platform/postgres/reachable.ts";
import { sessionSettings, withSessionSettings } from "../../../src/platform/postgres/session-settings.ts";
import { migrateQueueSchema } from "../../../src/core/queue/backend.ts";
import { createJobQueue } from "../../../src/core/queue/job-queue.ts";
import { createServiceClock, wallClock } from "../../../src/platform/clock.ts";
import { createLog } from "../../../src/platform/log.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { reconcile } from "../../../src/parts/reconcile/reconcile.ts";
import { defaultReconcileSettings } from "../../../src/parts/reconcile/settings.ts";
import { allReports } from "../../../src/parts/reports/catalogue/all.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { createServiceClient } from "../../../src/core/client/service-client.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { alertRows, eventsSoFar } from "../../alerts/timeline-stand.ts";
import { sweep } from "../../alerts/sweep-stand.ts";
import { testAlertContext, toldTo } from "../../alerts/test-alert-context.ts";
import { startStand } from "../../receiver/receiver-stand.ts";
import { ask } from "../../reports/ask.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { cloneDatabase, databaseUrl, withServer } from "../../support/server-commands.ts";
import { applyDeps } from "../../worker/worker-stand.ts";

/** A clone of the template whose sessions begin with these settings, unless they bring their own. */
async function databaseWith(
  settings: Readonly<Record<string, string>>,
  template = inject("templateDatabase"),
): Promise<{ url: string; drop(): Promise<void> }> {
  const serverUrl = inject("serverUrl");
  const name = `${inject("templateDatabase")}_${randomBytes(4).toString("hex")}`;
  await cloneDatabase(serverUrl, name, template);
  await withServer(serverUrl, async (client) => {
    for (const [setting, value] of Object.entries(settings)) {
      await client.query(`alter database ${name} set ${setting} = ${value}`);
    }
  });
  return {
    url: databaseUrl(serverUrl, name),
    drop: () =>
      withServer(serverUrl, async (client) => {
        await client.query(`drop database ${name} with (force)`);
      }),
  };
}

let sandbox: TestSandbox;
let events: Json[];
let expected: Json;

beforeAll(async () => {
  sandbox = await startTestSandbox("settings");
  await sandbox.control("POST", "/clock", { now: "2026-02-01T00:00:00.000Z" });
  const traffic = { orders: 6, subscriptions: 4, days: 35, seed: "settings", chargebacks: 1 };
  await sandbox.control("POST", "/traffic", traffic);
  events = (await eventsSoFar(sandbox)).slice(-15);
  expected = await mainJobUnder({});
});
afterAll(() => sandbox.close());

async function mainJobUnder(settings: Readonly<Record<string, string>>): Promise<Json> {
  const database = await databaseWith(settings);
  try {
    await assertReachable(database.url);
    return await mainJob(database.url);
  } finally {
    await database.drop();
  }
}

const clock = { now: () => new Date("2026-03-20T00:00:00.000Z") };
const alertContext = testAlertContext({ clock, serviceClock: clock });

/** Findings are made by slices that are read side by side. */
const sorted = (rows: Json[]): string[] => rows.map((row) => JSON.stringify({ ...row, finding: null })).sort();

/** Receives, applies, heals, reports, tells: what comes of it, without what the wall clock decides. */
async function mainJob(url: string): Promise<Json> {
  const stand = await startStand(url);
  const { db } = stand;
  try {
    for (const event of events) {
      const { status } = await stand.send(JSON.stringify(event));
      expect(status).toBe(200);
    }
    await applyBatch({ ...applyDeps(db), ...toldTo(alertContext) }, stand.committed.flat());
    await healAll(db);
    await sweep(db, alertContext);
    await takeJob(url);
    const period = { from: "2026-01-15", to: "2026-04-01", timeZone: "Europe/Berlin" };
    const reports: Json = {};
    for (const { name } of allReports) reports[name] = sorted((await ask(db, name, period)).rows);
    const states = await db("inbox.events").groupBy("state").select("state").count();
    const seen = await db("inbox.events").orderBy("event_id").select("event_id", "event_created_at");
    const rows = await db("mirror.orders").orderBy("id").select("id", "created_at", "total", "items");
    return { reports, states, seen, rows, alerts: await alertRows(db) };
  } finally {
    await stand.close();
  }
}

async function healAll(db: Awaited<ReturnType<typeof startStand>>["db"]): Promise<void> {
  const log = createLog({ level: "silent", name: "test" });
  const serviceClock = createServiceClock(wallClock);
  const random = seededRandom("settings");
  const location = { baseUrl: sandbox.url, apiKey: testKey };
  const client = createServiceClient({ ...location, log, wallClock, serviceClock, random });
  const { listener } = toldTo(alertContext);
  const deps = { db, client, log, random, clock: wallClock, serviceClock, listener };
  for (const kind of ["import", "full"] as const) {
    const done = await reconcile(deps, { ...defaultReconcileSettings, graceMs: 0 }, { kind }, { onProgress: () => {} });
    expect(done).toMatchObject({ kind: "done", result: { complete: true } });
    await db("mirror.orders").where("id", events.at(-1).data.object.id).increment("total", 1);
  }
  await client.close();
}

/** The queue's own schema, and a job through it. */
async function takeJob(url: string): Promise<void> {
  await migrateQueueSchema(url);
  const log = createLog({ level: "silent", name: "test" });
  const queue = createJobQueue({ log }, { kind: "postgres", url });
  try {
    queue.consume(() => {});
    await queue.roundTrip();
  } finally {
    await queue.close();
  }
}

/** That decide what is said. Each value is in one world of `npm test`, and alone in one of `npm run torture`. */
const spoken: readonly (readonly [setting: string, value: string])[] = [
  ["DateStyle", "'SQL, DMY'"],
  ["DateStyle", "'German'"],
  ["DateStyle", "'Postgres, MDY'"],
  ["IntervalStyle", "'sql_standard'"],
  ["IntervalStyle", "'iso_8601'"],
  ["TimeZone", "'America/St_Johns'"],
  ["TimeZone", "'Asia/Kolkata'"],
  ["search_path", "pg_catalog"],
  ["search_path", "''"],
  ["array_nulls", "off"],
  ["bytea_output", "'escape'"],
  ["extra_float_digits", "-15"],
  ["standard_conforming_strings", "off"],
  ["backslash_quote", "off"],
  ["quote_all_identifiers", "on"],
  ["transform_null_equals", "on"],
  ["xmloption", "'document'"],
  ["default_transaction_isolation", "'serializable'"],
  ["default_transaction_isolation", "'repeatable read'"],
  ["default_transaction_deferrable", "on"],
  ["idle_session_timeout", "50"],
  ["client_encoding", "'LATIN1'"],
];

/** As few worlds as hold every value: no two values of one setting are in the same. */
function together(): Record<string, string>[] {
  const worlds: Record<string, string>[] = [];
  for (const [setting, value] of spoken) {
    const free = worlds.find((world) => !(setting in world));
    if (free === undefined) worlds.push({ [setting]: value });
    else free[setting] = value;
  }
  return worlds;
}

/** What an operator decides. No setting is in two of these: in one world in `npm test`, each in its own in torture. */
const decided: readonly (readonly [name: string, settings: Readonly<Record<string, string>>])[] = [
  [
    "limits of time",
    {
      statement_timeout: "'60s'",
      lock_timeout: "'30s'",
      idle_in_transaction_session_timeout: "'60s'",
      synchronous_commit: "off",
    },
  ],
  [
    "another planner",
    {
      plan_cache_mode: "'force_generic_plan'",
      enable_hashjoin: "off",
      enable_seqscan: "off",
      join_collapse_limit: "1",
      work_mem: "'64kB'",
      jit_above_cost: "0",
    },
  ],
  ["parallel workers for everything", { debug_parallel_query: "on" }],
  [
    "another locale and noise",
    {
      lc_numeric: "'C'",
      lc_messages: "'C'",
      client_min_messages: "'debug1'",
      row_security: "off",
    },
  ],
];

describe("the main job comes to the same under", () => {
  const worlds = inject("isTorture") ? spoken.map(([setting, value]) => ({ [setting]: value })) : together();

  test.each(worlds.map((world) => [JSON.stringify(world), world] as const))("%s", async (_name, settings) => {
    expect(await mainJobUnder(settings)).toEqual(expected);
  });

  test.each(
    inject("isTorture")
      ? decided
      : [["all of it", Object.assign({}, ...decided.map(([, settings]) => settings))] as const],
  )("what an operator decides: %s", async (_name, settings) => {
    expect(await mainJobUnder(settings)).toEqual(expected);
  });

  test("all that decide what is said, together, from the first migration on", async () => {
    const settings = {
      DateStyle: "'SQL, DMY'",
      IntervalStyle: "'sql_standard'",
      TimeZone: "'Asia/Kolkata'",
      search_path: "pg_catalog",
      array_nulls: "off",
      bytea_output: "'escape'",
      extra_float_digits: "-15",
      standard_conforming_strings: "off",
      quote_all_identifiers: "on",
      transform_null_equals: "on",
      default_transaction_isolation: "'serializable'",
      statement_timeout: "'60s'",
    };
    const database = await databaseWith(settings, "template0");
    const db = createDatabase({ url: database.url, poolMax: 1, applicationName: "test" });
    try {
      await migrateSchema(db);
      expect(await mainJob(database.url)).toEqual(expected);
    } finally {
      await db.destroy();
      await database.drop();
    }
  });
});

describe("the settings of a connection", () => {
  const shown = async (url: string) => {
    const pool = createPool({ url, max: 1, applicationName: "settings", searchPath: "bullmq" });
    const { rows } = await pool.query<{ name: string; setting: string }>(
      "select name, setting from pg_settings where name = any($1)",
      [[...Object.keys(sessionSettings), "work_mem"]],
    );
    await pool.end();
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
  };

  test("stand behind those that the URL brings, which stay where they are no others", async () => {
    const url = new URL(databaseUrl(inject("serverUrl"), inject("templateDatabase")));
    url.searchParams.set("options", "-c work_mem=1MB -c DateStyle=German");
    expect(await shown(url.href)).toEqual({
      ...sessionSettings,
      search_path: "bullmq",
      work_mem: "1024",
    });
  });

  test.each(["", "?", "not a url", "postgres://h/db?sslmode=require", "/socket dir db", "%"])(
    "can be added to anything: %j",
    (url) => {
      expect(withSessionSettings(url)).toContain("DateStyle=ISO,MDY");
      expect(withSessionSettings(url).startsWith(url.split("?")[0] ?? "")).toBe(true);
    },
  );

  test("are brought by every connection that the program opens", () => {
    const source = new URL("../../../src/", import.meta.url);
    const opened = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .flatMap((name) =>
        [...readFileSync(new URL(name, source), "utf8").matchAll(/connectionString:[^\n]*/g)].map(([found]) => found),
      );
    expect(opened.length).toBeGreaterThan(4);
    expect(opened.filter((found) => !found.includes(" withSessionSettings("))).toEqual([]);
  });
});

describe("a session that is not what the program relies on stops the start", () => {
  test("where a pooler drops what the connection brings; the message has what the role needs", async () => {
    const database = await databaseWith({ DateStyle: "'SQL, DMY'", search_path: "pg_catalog" });
    const pooler = await startPooler(database.url);
    try {
      const refused = assertReachable(pooler.url);
      await expect(refused).rejects.toBeInstanceOf(ConfigurationError);
      const message = await refused.catch((error: unknown) => (error as Error).message);
      expect(message).toContain("DATABASE_URL: the session has DateStyle = 'SQL, DMY'");
      const statements = String(message).split("\n").slice(1);
      expect(statements).toContainEqual(expect.stringMatching(/set search_path = public;$/));
      await withServer(database.url, async (client) => {
        for (const statement of statements) await client.query(statement);
      });
      await expect(assertReachable(pooler.url)).resolves.toBeUndefined();
    } finally {
      pooler.close();
      await database.drop();
    }
  });

  test("where triggers are off", async () => {
    const database = await databaseWith({ session_replication_role: "replica" });
    await expect(assertReachable(database.url)).rejects.toThrow(/session_replication_role/);
    await database.drop();
  });
});

/** Passes everything on but the options of the start-up message, as poolers do that are told to ignore them. */
async function startPooler(url: string): Promise<{ url: string; close(): void }> {
  const { hostname, port } = new URL(url);
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.once("data", (first: Buffer) => {
      upstream.write(withoutOptions(first));
      client.pipe(upstream);
    });
    upstream.pipe(client);
    for (const socket of [client, upstream]) {
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const pooled = new URL(url);
  pooled.port = String((server.address() as AddressInfo).port);
  return { url: pooled.href, close: () => void server.close() };
}

/** Length, protocol, then names and values that end with a zero. */
function withoutOptions(message: Buffer): Buffer {
  const parts = message.subarray(8).toString("latin1").split("\0");
  const at = parts.indexOf("options");
  if (at >= 0) parts.splice(at, 2);
  const body = Buffer.from(parts.join("\0"), "latin1");
  const head = Buffer.from(message.subarray(0, 8));
  head.writeUInt32BE(body.length + 8);
  return Buffer.concat([head, body]);
}
