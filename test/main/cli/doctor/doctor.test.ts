import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { recordHeartbeat, schedulerBeat } from "../../../../src/parts/alerts/heartbeats.ts";
import { registerDoctor } from "../../../../src/main/cli/doctor/doctor.ts";
import type { CheckResult } from "../../../../src/app/check-result.ts";
import { createEncryption } from "../../../../src/platform/encryption.ts";
import { migrateSchema } from "../../../../src/main/schema.ts";
import { type BackendLocation, migrateQueueSchema } from "../../../../src/core/queue/backend.ts";
import { type JobQueue, createJobQueue } from "../../../../src/core/queue/job-queue.ts";
import { createLog } from "../../../../src/platform/log.ts";
import { withRunLease } from "../../../../src/parts/reconcile/runs/run-lease.ts";
import { addSecret } from "../../../../src/core/receiver/secrets-store.ts";
import { type TestDatabase, createTestDatabase } from "../../../support/database.ts";
import { freePort } from "../../../support/free-port.ts";
import { startMailServer } from "../../../support/mail-server.ts";
import { startOwnServer } from "../../../support/own-server.ts";
import { redisAvailable, startRedis } from "../../../support/redis.ts";
import { databaseUrl, withServer } from "../../../support/server-commands.ts";
import { readCompose, readEnvExample, serverSettings } from "../../../deployment/compose-file.ts";
import { emptyInbox, storeRow } from "../../../inbox/stored-events.ts";
import { runCommand } from "../command-line.ts";
import { type HostTrouble, noteTroubles } from "../../../../src/parts/delivery/dispatch/handler-hosts.ts";
import { noteBackup } from "../../../../src/core/mirror/backups.ts";
import { recordBeat } from "../../../../src/core/receiver/heartbeats.ts";
import { emptyTables } from "../../../support/empty-tables.ts";

const secret = "whsec_a-secret-that-is-long-enough";
let database: TestDatabase;
let queue: JobQueue;
beforeAll(async () => {
  database = await createTestDatabase();
  await migrateQueueSchema(database.url);
  queue = takingJobs({ kind: "postgres", url: database.url });
});
beforeEach(async () => {
  await emptyInbox(database.db);
  await emptyTables(database.db, ["receiver.secrets", "receiver.heartbeats", "alerts.heartbeats"]);
  await recordHeartbeat(database.db, "worker:1:a");
  await recordHeartbeat(database.db, schedulerBeat);
});
afterAll(async () => {
  await queue.close();
  await database.destroy();
});

/** What a worker does with the queue. */
function takingJobs(location: BackendLocation): JobQueue {
  const taking = createJobQueue({ log: createLog({ level: "silent", name: "test" }) }, location);
  taking.consume(() => {});
  return taking;
}

/** Checks that need a database. */
const ofDatabase = [
  "schema text",
  "durability",
  "server",
  "database role",
  "tuning",
  "inbox",
  "partitions",
  "queue",
  "worker",
  "scheduler",
  "handlers",
  "reconciliation",
  "signing secrets",
];

const environment = (env: Record<string, string | undefined>) => ({
  DATABASE_URL: database.url,
  SVC_WEBHOOK_SECRETS: secret,
  TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
  ...env,
});

async function examine(env: Record<string, string | undefined> = {}) {
  const run = await runCommand(registerDoctor, ["doctor", "--json"], { env: environment(env) });
  expect(run.error).toBeNull();
  const { healthy, findings } = JSON.parse(run.out) as {
    healthy: boolean;
    findings: CheckResult[];
  };
  const of = (name: string) => findings.find(({ check }) => check === name);
  const all = (name: string) => findings.filter(({ check }) => check === name);
  return { healthy, findings, of, all, exitCode: run.exitCode, out: run.out };
}

describe("tallyhook doctor", () => {
  test("names the process whose lock events wait for, and how to end it", async () => {
    const early = new Date(Date.now() - 75_000).toISOString();
    const holder = "process 4711 (psql). To end it: select pg_terminate_backend(4711);";
    await storeRow(database.db, {
      state: "failed",
      dueInSeconds: 5,
      reason: `waits for a lock since ${early} of ${holder}`,
    });
    const inbox = (await examine()).of("inbox");
    expect(inbox?.status).toBe("warning");
    expect(inbox?.detail).toContain(`of ${holder}`);
  });

  test("finds nothing amiss in a deployment that has what it needs", async () => {
    const { healthy, findings, exitCode } = await examine();
    expect(findings.filter(({ status }) => status === "failed")).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining(["configuration", "database", ...ofDatabase]),
    );
    expect(healthy).toBe(true);
    expect(exitCode).toBeNull();
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

  test("warns of partitions that are missing, also where events are dead", async () => {
    const { db } = database;
    await storeRow(db, { state: "dead" });
    expect((await examine()).of("partitions")).toMatchObject({ status: "ok" });
    const at = (number: string) => db.raw(`select setval('inbox.event_numbers', ${number})`);
    await at("25000000");
    expect((await examine()).of("partitions")).toMatchObject({
      status: "warning",
      detail: "the inbox has none ready for the next rows",
    });
    await at("900000000000");
    expect((await examine()).of("partitions")).toMatchObject({
      status: "warning",
      detail: expect.stringContaining("none for current rows") as string,
    });
    await at("1000");
    await db.raw("select setval('feed.change_numbers', 29000000)");
    expect((await examine()).of("partitions")).toMatchObject({
      status: "warning",
      detail: "the feed has none ready for the next rows",
    });
    await db.raw("select setval('feed.change_numbers', 1000)");
  });

  test("says which process reconciles, and warns of one that ended without releasing its lease", async () => {
    const { db } = database;
    const seen = async () => (await examine()).of("reconciliation");
    expect(await seen()).toMatchObject({ status: "ok", detail: "no run has worked yet" });
    const during = await withRunLease({ db, log: createLog({ level: "silent", name: "test" }) }, seen);
    const who = `process ${process.pid} on ${hostname()}`;
    const sinceAndUntil = /has been reconciling since \S+Z; it holds the lease until \S+Z and renews it/;
    if (during.kind !== "done") throw new Error("another process holds the lease");
    expect(during.value).toMatchObject({ status: "ok" });
    expect(during.value?.detail).toContain(who);
    expect(during.value?.detail).toMatch(sinceAndUntil);
    expect(await seen()).toMatchObject({
      status: "ok",
      detail: `no run is in progress; the last one was by ${who}`,
    });
    await db("reconcile.leases").update({ expires_at: db.fn.now() });
    expect(await seen()).toMatchObject({
      status: "warning",
      detail: expect.stringContaining(`${who} stopped reconciling before its end`) as string,
    });
  });

  test("a database that is away fails, what needs it is skipped, and the exit code is 2", async () => {
    const url = new URL(database.url);
    url.port = String(await freePort());
    const { of, healthy, exitCode, out } = await examine({ DATABASE_URL: url.href });
    expect(of("database")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("DATABASE_URL") as string,
    });
    for (const name of ofDatabase) {
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
    await database.db("tallyhook_migrations").insert({ name: "9999_later" });
    try {
      expect((await examine()).of("database")).toMatchObject({
        status: "warning",
        detail: "was migrated by a newer version (it has 9999_later)",
      });
    } finally {
      await database.db("tallyhook_migrations").where({ name: "9999_later" }).delete();
    }
  });

  test("a database without tables for the queue fails, and says what to run", async () => {
    const own = await createTestDatabase();
    try {
      const { of } = await examine({ DATABASE_URL: own.url });
      expect(of("queue")).toMatchObject({
        status: "failed",
        detail: expect.stringMatching(/no tables for the job queue.*migrate/) as string,
      });
    } finally {
      await own.destroy();
    }
  });

  test("a mail server is tried up to the sign-in, and one that is away fails", async () => {
    const server = await startMailServer();
    const env = { SMTP_URL: server.url, MAIL_FROM: "tallyhook@example.com" };
    expect((await examine(env)).of("mail")).toMatchObject({ status: "ok" });
    expect(server.mails).toEqual([]);
    const wrong = await examine({ ...env, SMTP_URL: server.url.replace("p%3A", "q") });
    expect(wrong.of("mail")).toMatchObject({
      status: "failed",
      detail: "no mail can be sent (535)",
    });
    await server.close();
    expect((await examine(env)).of("mail")).toMatchObject({ status: "failed" });
    expect((await examine()).of("mail")).toMatchObject({ status: "skipped" });
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
    "a Redis from which jobs come back is in order; one that gives them to no worker that runs, or is away, fails",
    async () => {
      const redis = await startRedis();
      try {
        const taking = takingJobs({ kind: "redis", url: redis.url });
        const { of } = await examine({ REDIS_URL: redis.url });
        await taking.close();
        for (const name of ["queue", "redis", "redis memory", "redis persistence"]) {
          expect(of(name)).toMatchObject({ status: "ok" });
        }
        expect((await examine({ REDIS_URL: redis.url })).of("queue")).toMatchObject({
          status: "failed",
          remedy: expect.stringContaining("look in the workers' log") as string,
        });
        await database.db("alerts.heartbeats").delete();
        expect((await examine({ REDIS_URL: redis.url })).of("queue")).toMatchObject({
          status: "ok",
          detail: expect.stringContaining("no worker runs") as string,
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

/** Nothing was heard of it for so long. */
const heard = (name: string, minutesAgo: number) =>
  database.db.raw("update alerts.heartbeats set beat_at = now() - make_interval(mins => ?) where name = ?", [
    minutesAgo,
    name,
  ]);

describe("who works, as doctor sees it", () => {
  test("no worker at all fails, and the scheduler is not judged", async () => {
    await database.db("alerts.heartbeats").delete();
    const { of, exitCode } = await examine();
    expect(of("worker")).toMatchObject({
      status: "failed",
      detail: expect.stringMatching(/^no worker runs, .* no alert is sent$/) as string,
      remedy: expect.stringContaining("node src/bin/tallyhook.js worker") as string,
    });
    expect(of("scheduler")).toMatchObject({ status: "skipped" });
    expect(exitCode).toBe(2);
  });

  test("a worker that was heard long ago is none", async () => {
    await heard("worker:1:a", 14);
    expect((await examine()).of("worker")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("the last heartbeat was 14 minutes ago") as string,
    });
  });

  test("one worker of two that missed its heartbeat is a warning", async () => {
    await recordHeartbeat(database.db, "worker:2:b");
    await heard("worker:2:b", 14);
    expect((await examine()).of("worker")).toMatchObject({
      status: "warning",
      detail: "1 worker runs; 1 missed its heartbeat, the last one seen 14 minutes ago",
    });
  });

  test("a scheduler that never started a task fails", async () => {
    await database.db("alerts.heartbeats").where({ name: schedulerBeat }).delete();
    const { of, exitCode } = await examine();
    expect(of("worker")).toMatchObject({ status: "ok", detail: "1 worker runs" });
    expect(of("scheduler")).toMatchObject({
      status: "failed",
      detail: "has never run a task, so there is no nightly run and no report is mailed",
    });
    expect(exitCode).toBe(2);
  });

  test("a scheduler that stands still fails", async () => {
    await heard(schedulerBeat, 20);
    expect((await examine()).of("scheduler")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("ran its last task 20 minutes ago") as string,
    });
  });
});

test("the last verified backup, as doctor sees it: none is missed until one was begun", async () => {
  expect((await examine()).of("backup")).toMatchObject({ status: "skipped" });
  await noteBackup(database.db, new Date().toISOString());
  expect((await examine()).of("backup")).toMatchObject({ status: "ok" });
  await database.db.raw("update mirror.backups set taken_at = taken_at - interval '31 hours'");
  expect((await examine()).of("backup")).toMatchObject({
    status: "failed",
    detail: "no verified one for 1 day 7 hours",
    remedy: expect.stringContaining("node src/bin/tallyhook.js backup DIRECTORY") as string,
  });
  await database.db("mirror.backups").del();
});

test("handlers that are down, as doctor sees them: a warning where the others run", async () => {
  const trouble = { files: ["a.mjs"], isApart: true, lastsMs: 1_000, why: "it exited with code 3" };
  const note = (...troubles: HostTrouble[]) => noteTroubles(database.db, "1:a", troubles);
  expect((await examine()).of("handlers")).toMatchObject({ status: "ok" });
  await note(trouble);
  expect((await examine()).of("handlers")).toMatchObject({
    status: "warning",
    detail: expect.stringMatching(/a\.mjs.*it exited with code 3; the others run$/) as string,
  });
  await note({ ...trouble, isApart: false });
  expect((await examine()).of("handlers")).toMatchObject({ status: "failed" });
  await note();
});

describe("receivers, as doctor sees them", () => {
  const beat = (isReady = true) => recordBeat(database.db, "receiver:1:a", { isReady, hasAnswered: true });
  const silentFor = (minutes: number) =>
    database.db.raw(
      "update receiver.heartbeats set beat_at = beat_at - make_interval(mins => :minutes), ready_at = ready_at - make_interval(mins => :minutes)",
      { minutes },
    );

  test("where none ever ran, that is a warning", async () => {
    expect((await examine()).of("receiver")).toMatchObject({
      status: "warning",
      detail: expect.stringContaining("none has ever run here") as string,
    });
  });

  test("one that runs is well, with when it last answered", async () => {
    await beat();
    expect((await examine()).of("receiver")).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/^1 receiver runs; .*last one answered: less than a minute ago$/) as string,
    });
  });

  test("one that was killed fails, and names the command", async () => {
    await beat();
    await silentFor(6);
    const { of, exitCode } = await examine();
    expect(of("receiver")).toMatchObject({
      status: "failed",
      detail: expect.stringMatching(/^no receiver runs, .* heard 6 minutes ago/) as string,
      remedy: expect.stringContaining("node src/bin/tallyhook.js receiver") as string,
    });
    expect(exitCode).toBe(2);
  });

  test("one that lives and cannot store events fails", async () => {
    await beat(false);
    expect((await examine()).of("receiver")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("1 receiver runs and cannot store events") as string,
    });
  });
});

describe("stored secrets, as doctor sees them", () => {
  const store = (key: string, value: string) =>
    addSecret({ db: database.db, encryption: createEncryption({ current: key }) }, "svc", {
      value,
    });

  test("a secret that opens is in order", async () => {
    await store("ab".repeat(32), secret);
    expect((await examine()).of("signing secrets")).toMatchObject({
      status: "ok",
      detail: "1 from the environment, 1 in the database",
    });
  });

  test("an encryption key that does not open one of the stored secrets fails, and names it", async () => {
    await store("ab".repeat(32), secret);
    const { id } = await store("cd".repeat(32), `${secret}-2`);
    const { of, exitCode, out } = await examine();
    expect(of("signing secrets")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining(
        `TALLYHOOK_ENCRYPTION_KEY does not decrypt 1 of 2 stored secrets: ${id} (key `,
      ) as string,
      remedy: expect.stringContaining("TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS") as string,
    });
    expect(exitCode).toBe(2);
    expect(out).not.toContain(secret);
    const previous = { TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS: "cd".repeat(32) };
    expect((await examine(previous)).of("signing secrets")).toMatchObject({ status: "ok" });
  });

  test("no key at all fails, and the message says how to make one", async () => {
    await store("ab".repeat(32), secret);
    const { of } = await examine({ TALLYHOOK_ENCRYPTION_KEY: undefined });
    expect(of("signing secrets")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("TALLYHOOK_ENCRYPTION_KEY is not set") as string,
    });
  });

  test("a secret of another scheme than the one in use fails", async () => {
    await store("ab".repeat(32), secret);
    const env = { SVC_SIGNATURE_SCHEME: "standard-webhooks", SVC_WEBHOOK_SECRETS: undefined };
    expect((await examine(env)).of("signing secrets")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("cannot be used with SVC_SIGNATURE_SCHEME") as string,
    });
  });
});

describe("functions, views and triggers, as doctor sees them", () => {
  let own: TestDatabase;
  beforeEach(async () => {
    own = await createTestDatabase();
  });
  afterEach(() => own.destroy());
  const schemaText = async () => (await examine({ DATABASE_URL: own.url })).of("schema text");

  test("they are in order whatever the settings of the database are", async () => {
    const name = new URL(own.url).pathname.slice(1);
    for (const setting of [
      "search_path = reports, mirror, public",
      "timezone = 'Asia/Kolkata'",
      "datestyle = 'SQL, DMY'",
      "quote_all_identifiers = on",
    ]) {
      await own.db.raw(`alter database ${name} set ${setting}`);
    }
    expect(await schemaText()).toMatchObject({ status: "ok" });
  });

  test("a function that was replaced by hand fails, and is named", async () => {
    const { rows } = await own.db.raw<{ rows: { text: string }[] }>(
      "select pg_get_functiondef('reports.read_slices'::regproc) as text",
    );
    const text = rows[0]?.text ?? "";
    await own.db.raw(text.replace(/(AS \$function\$)/, "$1 -- by hand\n").replaceAll("?", "\\?"));
    expect(await schemaText()).toMatchObject({
      status: "failed",
      detail: expect.stringMatching(/function reports\.read_slices\(.*\) \(changed\)$/) as string,
      remedy: expect.stringContaining("migrate") as string,
    });
  });

  test("a view that was replaced by hand fails, and is named", async () => {
    await own.db.raw(
      `do $$ begin
         execute 'create or replace view inbox.events as ' || rtrim(pg_get_viewdef('inbox.events'::regclass), ';')
           || ' where r.seq > 1';
       end $$`,
    );
    expect(await schemaText()).toMatchObject({
      status: "failed",
      detail: "changed by hand: view inbox.events (changed)",
    });
  });

  test("a guard that was switched off, or dropped, fails", async () => {
    const { rows } = await own.db.raw<{ rows: { name: string }[] }>(
      "select tgname as name from pg_trigger where tgrelid = 'mirror.versions'::regclass and not tgisinternal",
    );
    const guard = String(rows[0]?.name);
    await own.db.raw(`alter table mirror.versions disable trigger ${guard}`);
    expect(await schemaText()).toMatchObject({
      status: "failed",
      detail: expect.stringContaining(`trigger ${guard} on mirror.versions (changed)`) as string,
    });
    await own.db.raw(`drop trigger ${guard} on mirror.versions`);
    expect((await schemaText())?.detail).toContain(`trigger ${guard} on mirror.versions (missing)`);
  });

  test("what somebody added is a warning", async () => {
    await own.db.raw("create view mirror.of_somebody as select 1 as one");
    expect(await schemaText()).toMatchObject({
      status: "warning",
      detail: "not of this program: view mirror.of_somebody (added)",
    });
  });

  test("nothing is said of a text that another major version of the server worded", async () => {
    await own.db("tallyhook_schema_objects").update({ server_major: 9 });
    expect(await schemaText()).toMatchObject({ status: "skipped" });
    await migrateSchema(own.db);
    expect(await schemaText()).toMatchObject({ status: "ok" });
  });
});

describe("settings of the server, as doctor sees them", () => {
  let own: TestDatabase;
  let name: string;
  beforeEach(async () => {
    own = await createTestDatabase();
    name = new URL(own.url).pathname.slice(1);
    await recordHeartbeat(own.db, "worker:1:a");
  });
  afterEach(() => own.destroy());
  const server = async () => examine({ DATABASE_URL: own.url });
  const onServer = (sql: string) => withServer(inject("serverUrl"), (client) => client.query(sql));

  test("what a crash can take is a warning: the server of the tests runs without fsync", async () => {
    const said = (await server()).all("durability");
    for (const name of ["fsync", "full_page_writes"]) {
      expect(said).toContainEqual(
        expect.objectContaining({
          status: "warning",
          detail: expect.stringContaining(`${name} is off`) as string,
        }),
      );
    }
    expect((await server()).of("durability")).toMatchObject({
      remedy: expect.stringContaining("fsync = on") as string,
    });
  });

  test.each([
    ["synchronous_commit = off", "durability", "warning", "the last commits"],
    ["statement_timeout = '5s'", "server", "warning", "statement_timeout is 5000 ms"],
    ["idle_in_transaction_session_timeout = '1s'", "server", "warning", "is 1000 ms"],
    ["default_transaction_read_only = on", "server", "failed", "nothing can be written"],
  ])("%s of the database: %s %s, and how to undo it there", async (setting, check, status, says) => {
    await onServer(`alter database ${name} set ${setting}`);
    const found = (await server()).all(check).find(({ detail }) => detail.includes(says));
    expect(found).toMatchObject({
      status,
      remedy: expect.stringContaining(
        `it is set for the database: alter database "${name}" set ${setting.split(" ")[0]} = `,
      ) as string,
    });
  });

  test("a login that is a superuser of PostgreSQL is a warning; one that owns its database is not", async () => {
    const { username, password } = new URL(own.url);
    expect((await server()).of("database role")).toMatchObject({
      status: "warning",
      detail: expect.stringContaining(`${username} is a superuser of PostgreSQL`) as string,
    });
    const role = `${name}_plain`;
    await onServer(`create role ${role} login password '${password}'`);
    await onServer(`grant "${username}" to ${role}`);
    const url = new URL(own.url);
    url.username = role;
    expect((await examine({ DATABASE_URL: url.href })).of("database role")).toMatchObject({
      status: "ok",
    });
    await onServer(`drop role ${role}`);
  });

  test("a login that may only read fails, and so does one without any right", async () => {
    const [{ password }, role] = [new URL(own.url), `${name}_reader`];
    await onServer(`create role ${role} login password '${password}'`);
    const url = new URL(own.url);
    url.username = role;
    const without = await examine({ DATABASE_URL: url.href });
    expect(without.of("database")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("The role of DATABASE_URL lacks a privilege") as string,
    });
    await onServer(`grant pg_read_all_data to ${role}`);
    expect((await examine({ DATABASE_URL: url.href })).of("database role")).toMatchObject({
      status: "failed",
      detail: `${role} may not write to the inbox, so no webhook can be stored`,
    });
    await onServer(`drop role ${role}`);
  });

  test("a Redis that does not answer fails, with the setting to look at", async () => {
    const { of } = await examine({ REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
    expect(of("queue")).toMatchObject({
      status: "failed",
      remedy: expect.stringContaining("check REDIS_URL") as string,
    });
  });

  test("triggers that do not run fail, since the database cannot be used", async () => {
    await onServer(`alter database ${name} set session_replication_role = replica`);
    expect((await server()).of("database")).toMatchObject({
      status: "failed",
      detail: expect.stringMatching(/triggers .* would not run\. Remove the setting from/) as string,
    });
  });

  test("a setting of the role is undone at the role", async () => {
    const { username: role } = new URL(own.url);
    await onServer(`alter role "${role}" in database ${name} set statement_timeout = '5s'`);
    expect((await server()).of("server")?.remedy).toContain(`alter role "${role}" in database "${name}" set`);
  });

  test("a limit of connections that is too low for the processes is a warning with the number that is needed", async () => {
    await onServer(`alter database ${name} connection limit 12`);
    expect((await server()).of("server")).toMatchObject({
      status: "warning",
      detail: expect.stringMatching(
        new RegExp(`the database ${name} allows 12 connections; .* take up to \\d+`),
      ) as string,
    });
  });

  test("a server that is set up badly is told all of it, and how to mend each", async () => {
    const bad = await startOwnServer({
      autovacuum: "off",
      full_page_writes: "off",
      max_connections: "30",
      shared_buffers: "16MB",
      track_counts: "off",
    });
    try {
      const { all } = await examine({ DATABASE_URL: bad.url });
      expect(all("durability")).toMatchObject([
        { status: "warning", detail: expect.stringContaining("full_page_writes is off") as string },
      ]);
      expect(all("server").map(({ detail }) => detail.split(" is ")[0])).toEqual([
        expect.stringContaining("the server (max_connections) allows 2"),
        "autovacuum",
        "track_counts",
        "shared_buffers",
      ]);
      for (const { status, remedy } of all("server")) {
        expect([status, remedy]).toEqual(["warning", expect.stringMatching(/set |allow /) as string]);
      }
    } finally {
      await bad.destroy();
    }
  });
});

describe("what an event costs by the server's settings, as doctor sees it", () => {
  test("a server with a small log and little memory is advised, a line each, and healthy all the same", async () => {
    const { all, healthy, exitCode } = await examine();
    const found = all("tuning");
    expect(found.map(({ status, detail }) => [status, detail.split(":")[0]])).toEqual([
      ["advice", "max_wal_size is 1GB, and better 4GB"],
      ["advice", "shared_buffers is 128MB, and better 512MB"],
    ]);
    expect(found.map(({ remedy }) => remedy)).toEqual([
      "set max_wal_size = 4GB in postgresql.conf, then reload it (select pg_reload_conf())",
      "set shared_buffers = 512MB in postgresql.conf, then restart the server",
    ]);
    expect(healthy).toBe(true);
    expect(exitCode).toBeNull();
  });

  test("nothing is advised on the settings of the compose file", async () => {
    const { wal_compression: _, ...settings } = serverSettings(
      readCompose(readEnvExample({ SVC_BASE_URL: "https://api.example.com" })),
    );
    const tuned = await startOwnServer(settings);
    try {
      expect((await examine({ DATABASE_URL: tuned.url })).all("tuning")).toEqual([
        expect.objectContaining({ status: "ok" }),
      ]);
    } finally {
      await tuned.destroy();
    }
  });
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
