import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { keepFeed } from "../../src/core/mirror/changes/feed-partitions.ts";
import { keepPartitions } from "../../src/core/inbox/partitions.ts";
import { registerClose } from "../../src/parts/reports/cli/close.ts";
import { registerReport } from "../../src/parts/reports/cli/report.ts";
import { type RoleName, roleNames } from "../../src/app/rights.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import type { ScheduledTask } from "../../src/core/worker/scheduled-tasks.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import { changeAccount, createAccount } from "../../src/app/people/accounts.ts";
import { hashPassword } from "../../src/app/people/password.ts";
import { roleNames as everyRole } from "../../src/app/people/permissions.ts";
import { createLog } from "../../src/platform/log.ts";
import { errorCode } from "../../src/platform/postgres/errors.ts";
import type { PartitionChanges } from "../../src/platform/postgres/number-partitions.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { declined, event } from "../alerts/sweep-stand.ts";
import { type DashboardStand, cookieOf, openDashboard, send } from "../dashboard/dashboard-stand.ts";
import { filledClock } from "../dashboard/fill-database.ts";
import { useFilledDatabase } from "../dashboard/filled-database.ts";
import { untilRegistered } from "../dispatch/dispatch-stand.ts";
import { storeChange } from "../feed/stored-changes.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { runCommand } from "../main/cli/command-line.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { signatureOf } from "../receiver/receiver-stand.ts";
import { type DatabaseRoles, makeDatabaseRoles } from "../support/database-roles.ts";
import { startMailServer } from "../support/mail-server.ts";
import { withServer } from "../support/server-commands.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { killPrograms } from "./program.ts";
import { allParts } from "../../src/main/parts.ts";

const database = useFilledDatabase();
const dayMs = 86_400_000;
let roles: DatabaseRoles;
let folder: string;

beforeAll(async () => {
  await migrateQueueSchema(database.directUrl);
  roles = await makeDatabaseRoles(database.directUrl);
  // As after the next migrate.
  await roles.grant();
  folder = await mkdtemp(join(tmpdir(), "tallyhook-roles-"));
  await writeFile(
    join(folder, "handler.mjs"),
    `import { defineHandler } from ${JSON.stringify(pathToFileURL(join(inject("image"), "src/bin/handlers.js")).href)};
     export default defineHandler({
       name: "win-back", on: ["order.failed"], includeImport: true, async run({ log }) { log.info("a word of the handler"); },
     });`,
  );
});
afterAll(async () => {
  await killPrograms();
  await roles?.drop();
  await rm(folder, { recursive: true, force: true });
});

const environmentOf = (role: RoleName): Record<string, string> => ({
  DATABASE_URL: roles.urlOf(role),
  SVC_BASE_URL: database.service.baseUrl,
  SVC_API_KEY: database.service.apiKey,
  TALLYHOOK_TIME_ZONE: "UTC",
  // The service's clock stands.
  RECONCILE_GRACE_SECONDS: "0",
});

/** Statements that the server refused, in what was logged. */
const refusals = (text: string): string[] => text.match(/permission denied[^"]*|must be owner[^"]*/g) ?? [];

describe("receiver and worker, each under its role", () => {
  let receiving: Deployment;

  test("take a webhook, apply it, alert, and run a handler on it; nothing is refused", async () => {
    const [ofReceiver, ofWorker] = [
      await layOutDeployment({ databaseUrl: roles.urlOf("receiver") }),
      await layOutDeployment({ databaseUrl: roles.urlOf("worker") }),
    ];
    receiving = ofReceiver;
    Object.assign(ofWorker.environment, environmentOf("worker"), { TALLYHOOK_HANDLERS: folder });
    const [receiver, worker] = await Promise.all([ofReceiver.startReceiver(), ofWorker.startWorker()]);
    await untilRegistered(database.db, "win-back");
    const body = JSON.stringify(event("order.failed", sampleOrder({ ...declined, id: "ord_roles" })));
    const answer = await fetch(receiving.webhooksUrl, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "svc-signature": signatureOf(Buffer.from(body), { secret: webhookSecret }),
      },
      body,
    });
    expect(answer.status).toBe(200);
    expect(await (await fetch(receiving.readyUrl)).json()).toEqual({ status: "ok", reasons: [] });
    await Promise.all([worker.printed("an alert was sent"), worker.printed("a word of the handler")]);
    expect(await database.db("mirror.orders").where({ id: "ord_roles" }).pluck("status")).toEqual(["failed"]);
    const exits = await Promise.all([receiver.stop(), worker.stop()]);
    expect(exits.map(({ code }) => code)).toEqual([0, 0]);
    // What the receiver counted is stored at its end.
    expect(await database.db("receiver.answers_by_minute").first()).toBeDefined();
    expect(refusals(receiver.output() + worker.output())).toEqual([]);
  });

  test("every scheduled task runs: the nightly run, upkeep, retention, mails, alerts; nothing is refused", async () => {
    let logged = "";
    const destination = { write: (line: string) => void (logged += line) };
    const log = createLog({ level: "info", name: "worker", destination });
    // A night that no worker had.
    const aheadMs = filledClock.now().getTime() + 30 * dayMs - Date.now();
    const mails = await startMailServer();
    const settings = {
      ...environmentOf("worker"),
      SMTP_URL: mails.url,
      MAIL_FROM: "tallyhook@example.com",
      REPORTS_CRON: "0 7 * * *",
      REPORTS_MAIL_TO: "finance@example.com",
      REPORTS_MAIL: allReports.map(({ name }) => name).join(),
    };
    const runtime = createRuntime(allParts, loadConfig(settings), log, {
      wallClock: { now: () => new Date(Date.now() + aheadMs) },
    });
    try {
      const tasks: Record<string, ScheduledTask> = {};
      for (const part of allParts) Object.assign(tasks, await part.tasks?.(runtime, { service: database.service }));
      for (const task of Object.values(tasks)) await task.run(new AbortController().signal);
      expect(Object.keys(tasks)).toEqual(expect.arrayContaining(["reconcile", "inbox-partitions", "feed-partitions"]));
      expect(logged).toContain('"the nightly run is done"');
      expect(mails.mails).not.toEqual([]);
      expect(refusals(logged)).toEqual([]);
    } finally {
      await runtime.close();
      await mails.close();
    }
  });
});

describe("the dashboard under its role", () => {
  let dashboard: DashboardStand;
  let db: Knex;
  beforeAll(async () => {
    const url = roles.urlOf("dashboard");
    db = createDatabase({ url, poolMax: 4, applicationName: "tallyhook test" });
    dashboard = await openDashboard({ db, environment: { DATABASE_URL: url } }, { service: database.service });
  });
  afterAll(async () => {
    await dashboard.close();
    await db.destroy();
  });

  /** Adds an account, signs it in, and returns its number and how it asks for pages. */
  async function signedIn(email: string) {
    const password = "four words do not belong";
    const passwordHash = await hashPassword(password);
    const { id } = await database.db.transaction((trx) =>
      createAccount(trx, { email, roles: everyRole, passwordHash }),
    );
    const cookie = cookieOf(await send(`${dashboard.url}/sign-in`, { form: { email, password } }));
    if (cookie === null) throw new Error("nobody was signed in");
    const page = (path: string, form?: Record<string, string>) =>
      send(`${dashboard.url}${path}`, { cookie, ...(form === undefined ? {} : { form }) });
    return { id, cookie, page };
  }

  test("gives a person whose roles have changed another token, and goes on", async () => {
    const { id, cookie, page } = await signedIn("lin@roles.example");
    await database.db.transaction((trx) => changeAccount(trx, id, { roles: ["viewer"] }));
    const answer = await page("/");
    const next = cookieOf(answer);
    expect([answer.status, next === null || next === cookie]).toEqual([200, false]);
  });

  test("silences a rule", async () => {
    const { page } = await signedIn("joan@roles.example");
    const [, version = ""] =
      /action="\/alerts\/silences"[^]*?name="decided-on" value="([^"]*)"/.exec(
        await (await page("/alerts/silences")).text(),
      ) ?? [];
    const form = { "decided-on": version, rule: "decline", hours: "1", "up-to": "error" };
    expect((await page("/alerts/silences", form)).status).toBe(303);
    const silenced = database.db("alerts.silences").where({ began_by: "joan@roles.example" });
    expect(await silenced.pluck("rule")).toEqual(["decline"]);
  });

  test("signs a person in, shows a page of each group, and replays an event", async () => {
    const { page } = await signedIn("ada@roles.example");
    const pages = [
      "/",
      "/events",
      "/deliveries",
      "/objects",
      "/dunning",
      "/chargebacks",
      "/reconciliation",
      "/reports/month-end?from=2026-10-01&to=2026-10-31",
      "/alerts",
      "/handlers",
      "/endpoint",
      "/admin/users",
      "/me",
    ];
    for (const path of pages) expect([path, (await page(path)).status]).toEqual([path, 200]);
    const { seq } = await database
      .db("inbox.receipts")
      .whereNotNull("raw")
      .orderBy("seq", "desc")
      .first<{ seq: string }>("seq");
    const preview = await (await page(`/events/${seq}/preview`)).text();
    const [, version = ""] = /name="decided-on" value="([^"]*)"/.exec(preview) ?? [];
    const answer = await page(`/events/${seq}/replay`, { "decided-on": version });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/events/${seq}`]);
    const acts = await database.db("people.audit").where({ subject_id: seq }).pluck("action");
    expect(acts).toContain("event.replayed");
  });
});

describe("reports under their role", () => {
  const run = (register: typeof registerReport, ...args: string[]) =>
    runCommand(register, args, { env: environmentOf("reports") });

  test("every report is printed", async () => {
    for (const { name } of allReports) {
      const { error } = await run(registerReport, "report", name, "--from", "2026-10", "--format", "csv");
      expect([name, error]).toEqual([name, null]);
    }
  });

  test("a month is closed", async () => {
    const { error, out } = await run(
      registerClose,
      "close",
      "2026-10",
      "--yes",
      "--by",
      "Ada",
      "--force",
      "a try under the role",
      "--json",
    );
    expect([error, out]).toEqual([null, expect.stringContaining("2026-10")]);
  });
});

describe("what no role may do", () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    receiver: [
      "select raw from inbox.receipts",
      "select id from mirror.orders",
      "select email from people.accounts",
      "update receiver.secrets set retired_at = now()",
      "delete from inbox.receipts",
      "select inbox.drop_partitions(1)",
    ],
    worker: [
      "select ciphertext from receiver.secrets",
      "select email from people.accounts",
      "select actor from people.audit",
      "update mirror.versions set data = '{}'",
      "delete from mirror.versions",
      "insert into reports.closes default values",
      "drop table inbox.receipts_default",
      "alter table mirror.versions disable trigger versions_append_only",
      "insert into people.audit (actor, via, action, at) values ('x', 'dashboard', 'x', '2020-01-01')",
      "insert into people.audit (id, actor, via, action) overriding system value values (9, 'x', 'x', 'x')",
    ],
    dashboard: [
      "update mirror.versions set data = '{}'",
      "delete from mirror.versions",
      "delete from mirror.heals",
      "update people.audit set action = ''",
      "delete from alerts.history",
      "update inbox.receipts set raw = null",
      "select inbox.drop_partitions(1)",
      "select feed.drop_partitions(1)",
      "select inbox.drop_week('2026-11-23')",
      `insert into mirror.versions (resource, id, source_updated_at, content_hash, cause, data, recorded_at)
       values ('order', 'x', '2020-01-01', 'x', 'event:1', '{}', '2020-01-01')`,
    ],
    reports: [
      "select raw from inbox.receipts",
      "select email from mirror.customers",
      "insert into mirror.orders (id, last_cause) values ('x', 'x')",
      "delete from reports.closes",
    ],
    bi: ["select email from mirror.customers", "select ciphertext from receiver.secrets"],
  };
  /** For each of them. */
  const everybody = [
    "create table public.own (n integer)",
    "create table inbox.own (n integer)",
    "create schema own",
    "drop table mirror.orders",
    "truncate mirror.versions",
    "alter table inbox.receipts add column own integer",
    "create role own",
    "select key from mirror.erasure_key limit 0; select hash from mirror.erased_contacts for update",
  ];

  test.each(roleNames)("%s is refused everything that is not its work", async (role) => {
    const statements = [...everybody, ...(refused[role] ?? [])];
    await withServer(roles.urlOf(role), async (client) => {
      for (const sql of statements) {
        // The setting by which an erasure passes the triggers of history opens nothing.
        await client.query("begin read write; set local tallyhook.erasure = 'on'");
        const outcome = await client.query(sql).then(
          () => "done",
          (error: unknown) => errorCode(error),
        );
        await client.query("rollback");
        expect([sql, outcome]).toEqual([sql, "42501"]);
      }
    });
  });

  test.each([
    "update reports.closes set reason = 'other'",
    "update reports.preparations set reason = 'other'",
    `insert into reports.closed_reports (close, report, columns, about, row_count, sha256)
     select id, 'own', '[]', '{}', 0, '' from reports.closes`,
    `insert into reports.closed_evidence (close, kind, n, content) select id, 'runs', 0, '{}' from reports.closes`,
  ])(
    "what a role must be able to lock or to write once, its triggers keep, also with that setting: %s",
    async (sql) => {
      for (const role of ["reports", "dashboard"] as const) {
        const change = withServer(roles.urlOf(role), (client) => client.query(`set tallyhook.erasure = 'on'; ${sql}`));
        await expect(change).rejects.toThrow(/append-only/);
      }
    },
  );
});

// Last: it drops what the others read.
test("partitions come and go by the worker's role, though it owns no table", async () => {
  const db = createDatabase({
    url: roles.urlOf("worker"),
    poolMax: 2,
    applicationName: "tallyhook test",
  });
  const log = createLog({ level: "silent", name: "test" });
  const changes: PartitionChanges[] = [];
  const keep = async (now: Date): Promise<void> => {
    const kept = { now, keepDays: 30 };
    changes.push(await keepPartitions({ db, log }, kept), await keepFeed({ db, log }, kept));
  };
  try {
    await database.db("feed.consumers").delete();
    // Each week the numbers go on to the next partition; once its rows are old, one goes.
    for (let week = 0; week < 4; week++) {
      const day = new Date(Date.now() + week * 7 * dayMs);
      await storeRow(database.db, { state: "applied" });
      await storeChange(database.db, { recordedAt: day });
      await database.db("inbox.receipts").update({ received_at: day });
      await database.db("inbox.progress").update({ state: "applied" });
      await keep(new Date(day.getTime() + 7 * dayMs));
    }
    await keep(new Date(Date.now() + 400 * dayMs));
    const [created, dropped] = [
      changes.flatMap((change) => change.created),
      changes.flatMap((change) => change.dropped),
    ];
    for (const name of ["receipts_", "progress_", "seen_", "changes_"]) {
      expect(created, `${name} made`).toContainEqual(expect.stringContaining(name));
      expect(dropped, `${name} dropped`).toContainEqual(expect.stringContaining(name));
    }
  } finally {
    await db.destroy();
  }
});
