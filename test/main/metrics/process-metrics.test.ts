import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countOpenWork } from "../../../src/core/inbox/queries.ts";
import { replayEvents } from "../../../src/core/inbox/retention.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { runReceiver } from "../../../src/app/processes/run-receiver.ts";
import { runWorker } from "../../../src/app/processes/run-worker.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { catalogue } from "../../../src/main/metrics/list-metrics.ts";
import { addDatabaseMetrics } from "../../../src/app/metrics/database-metrics.ts";
import { createProcessMetrics } from "../../../src/app/metrics/serve-metrics.ts";
import type { Listener } from "../../../src/core/mirror/listener.ts";
import { createRuntime } from "../../../src/app/create-runtime.ts";
import type { Runtime } from "../../../src/app/runtime.ts";
import { createLog } from "../../../src/platform/log.ts";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import { createMetrics } from "../../../src/platform/metrics/registry.ts";
import { migrateQueueSchema } from "../../../src/core/queue/backend.ts";
import { type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { allParts } from "../../../src/main/parts.ts";

const log = createLog({ level: "silent", name: "test", destination: process.stderr });
const token = "a-token-for-these-metrics";

let database: TestDatabase;
let runtime: Runtime;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrateQueueSchema(database.directUrl);
  const settings = { HOST: "127.0.0.1", PORT: "0", ADMIN_PORT: "0", METRICS_TOKEN: token };
  runtime = createRuntime(allParts, loadConfig({ ...database.environment, ...settings }), log);
});
afterAll(async () => {
  await runtime.close();
  await database.destroy();
});

/** The samples of a scrape, by name and labels. */
const samplesIn = (text: string): Map<string, number> =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );

describe("of a system that has done something", () => {
  let sandbox: TestSandbox;
  let text: string;

  beforeAll(async () => {
    sandbox = await startTestSandbox("metrics");
    const metrics = createProcessMetrics(runtime, { name: "start", version: "1.2.3" });
    await runReceiver(runtime, {
      metrics,
      signingSecrets: async (url) => [
        (
          await sandbox.ok("POST", "/v1/webhook_endpoints", {
            url: `${url}/webhooks`,
            enabled_events: ["*"],
          })
        ).signing_secret,
      ],
    });
    const service = { baseUrl: sandbox.url, apiKey: "svc_test_sk_sandbox" };
    const worker = await runWorker(runtime, { metrics, service });
    const admin = await metrics.serve(worker);
    await sandbox.control("POST", "/traffic", { orders: 20, subscriptions: 4, days: 2, seed: 3 });
    await sandbox.control("GET", "/idle");
    await eventually("everything that arrived is applied", async () => {
      const open = await countOpenWork(database.db);
      return open.events === 0 && open.fetches === 0;
    });
    const authorization = `Bearer ${token}`;
    const answer = await fetch(`${admin.url}/metrics`, { headers: { authorization } });
    text = await answer.text();
  });
  afterAll(() => sandbox.close());

  test("counts each webhook once, in what was received and in what was applied", async () => {
    const { data } = await sandbox.control("GET", "/events?limit=50000");
    const sent = (data as unknown[]).length;
    expect(sent).toBeGreaterThan(40);
    const samples = samplesIn(text);
    const received = 'tallyhook_receiver_requests_total{outcome="accepted",reason="none"}';
    expect(samples.get(received)).toBe(sent);
    expect(samples.get("tallyhook_apply_lag_seconds_count")).toBe(sent);
    const durations =
      'http_server_request_duration_seconds_count{http_request_method="POST",http_route="/webhooks",' +
      'http_response_status_code="200"}';
    expect(samples.get(durations)).toBe(sent);
    expect(samples.get('tallyhook_inbox_events{state="dead"}')).toBe(0);
    expect(samples.get("tallyhook_inbox_oldest_unapplied_age_seconds")).toBe(0);
    expect(samples.get("tallyhook_worker_alive")).toBe(1);
  });

  test("serves every metric of the catalogue, and each part can be read", () => {
    for (const { name, type } of catalogue) {
      expect(text, name).toContain(`# TYPE ${name} ${type}\n`);
    }
    const parts = [...samplesIn(text)].filter(([name]) => name.startsWith("tallyhook_database_read_success"));
    expect(parts.map(([name, value]) => `${name} ${value}`)).toEqual(parts.map(([name]) => `${name} 1`));
    expect(parts).toHaveLength(allParts.flatMap((part) => part.metrics ?? []).length);
  });

  test("shows no token, and nothing of a customer", async () => {
    const customers = await database.db("mirror.customers").select("id", "email");
    expect(customers.length).toBeGreaterThan(0);
    for (const { id, email } of customers as { id: string; email: string | null }[]) {
      expect(text).not.toContain(id);
      if (email !== null) expect(text).not.toContain(email);
    }
    expect(text).not.toContain(token);
  });

  const isThere = spawnSync("promtool", ["--version"]).status === 0;
  test.skipIf(!isThere && process.env["CI"] !== "true")("promtool has nothing to say", () => {
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
      input: text,
      encoding: "utf8",
    });
    expect([status, stdout, stderr]).toEqual([0, "", ""]);
  });
});

test("an event that is replayed counts no second time in the lag", async () => {
  const lags: number[] = [];
  const seqs = (await database.db("inbox.progress").where({ state: "applied" }).limit(3).select("seq")).map(
    ({ seq }: { seq: string }) => Number(seq),
  );
  expect(seqs).toHaveLength(3);
  await replayEvents(database.db, seqs);
  const deps = {
    db: database.db,
    log,
    random: runtime.random,
    places: runtime.config.eventPlaces,
    clock: runtime.wallClock,
    serviceClock: runtime.serviceClock,
    listener: nobodyListens,
    onApplied: (waits: readonly number[]) => void lags.push(...waits),
  };
  await applyBatch(deps, seqs);
  expect(lags).toEqual([]);
});

/** Of what is applied, nobody is told. */
const nobodyListens: Listener = { tellWithin: (_log, transaction) => transaction(async () => []) };

describe("what is read from the database", () => {
  const readAll = async (db = database.db): Promise<Map<string, number>> => {
    const metrics = createMetrics({ log });
    await addDatabaseMetrics(metrics, runtime, db);
    return samplesIn(await metrics.text());
  };

  test("has labels that nobody outside can make many of", async () => {
    const { db } = database;
    await db.raw(
      `insert into feed.consumers (name, position) select 'reader-' || lpad(n::text, 3, '0'), 0
       from generate_series(1, 130) n`,
    );
    await db.raw(
      `insert into reconcile.findings
         (key, class, severity, state, amount_at_risk_minor, currency, first_seen, last_seen)
       select 'hostile:' || n, 'missing_here', 'high', 'open', 100,
              case when n <= 130 then 'x' || n when n = 131 then 'EUR' when n = 132 then 'eur' end, now(), now()
       from generate_series(1, 133) n`,
    );
    const samples = await readAll();
    const named = (name: string) => [...samples].filter(([each]) => each.startsWith(`${name}{`));
    expect(named("tallyhook_feed_consumer_unread_age_seconds")).toHaveLength(100);
    expect(Object.fromEntries(named("tallyhook_findings_at_risk_minor"))).toEqual({
      'tallyhook_findings_at_risk_minor{currency="eur"}': 200,
      'tallyhook_findings_at_risk_minor{currency="other"}': 13_000,
      'tallyhook_findings_at_risk_minor{currency="unknown"}': 100,
    });
  });

  test("goes by indexes wherever a table grows", async () => {
    const { db } = database;
    const asked: { sql: string; bindings: readonly string[] }[] = [];
    const watched = db.withUserParams({});
    watched.on("query", ({ sql, bindings }: { sql: string; bindings: string[] }) => {
      asked.push({ sql, bindings });
    });
    await readAll(watched);
    expect(asked.length).toBeGreaterThanOrEqual(7);
    /** As many rows as somebody has set up: handlers, readers, lists, receivers. */
    const small = /Seq Scan on (handlers|consumers|leases|restores|heartbeats|backups|hosts)\b/;
    for (const { sql, bindings } of asked) {
      const plan = await db.transaction(async (trx) => {
        await trx.raw("set local enable_seqscan = off");
        const numbered = sql.replaceAll(/\$\d+/g, "?");
        const { rows } = await trx.raw<{ rows: Record<string, string>[] }>(`explain ${numbered}`, bindings as string[]);
        return rows.map((row) => row["QUERY PLAN"] ?? "");
      });
      expect(
        plan.filter((line) => line.includes("Seq Scan") && !small.test(line)),
        sql,
      ).toEqual([]);
    }
  });

  test("is absent where the database does not answer, and says so", async () => {
    const away = createDatabase({
      url: database.url,
      poolMax: 1,
      applicationName: "tallyhook test",
    });
    await away.destroy();
    const samples = await readAll(away);
    expect(samples.get('tallyhook_database_read_success{part="inbox"}')).toBe(0);
    expect(samples.has("tallyhook_inbox_oldest_unapplied_age_seconds")).toBe(false);
    expect(samples.get('tallyhook_database_read_success{part="queue"}')).toBe(1);
    expect(samples.has('tallyhook_queue_jobs{queue="apply",state="waiting"}')).toBe(true);
  });
});
