import { randomBytes } from "node:crypto";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { assessRun } from "../src/parts/alerts/rules/reconciliation.ts";
import { assessAffected } from "../src/parts/alerts/assess.ts";
import { raise } from "../src/parts/alerts/raise-conditions.ts";
import { stormCondition } from "../src/parts/alerts/storms/storms.ts";
import { registerAlerts } from "../src/parts/alerts/cli/alerts.ts";
import { registerDoctor } from "../src/main/cli/doctor/doctor.ts";
import { registerEvents } from "../src/parts/browse/events/command.ts";
import { registerFindings } from "../src/parts/reconcile/cli/findings.ts";
import { registerReport } from "../src/parts/reports/cli/report.ts";
import { registerSecrets } from "../src/main/cli/secrets.ts";
import { createServiceClock, wallClock } from "../src/platform/clock.ts";
import { createLog } from "../src/platform/log.ts";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import { seededRandom } from "../src/platform/random.ts";
import { noteBackup } from "../src/core/mirror/backups.ts";
import { keepUnbelieved } from "../src/core/mirror/write/apply.ts";
import { applyHeal, proposeHeal } from "../src/parts/reconcile/heal-object.ts";
import { checkInvariants } from "../src/parts/reconcile/invariants/check-invariants.ts";
import { reconcile } from "../src/parts/reconcile/reconcile.ts";
import { defaultReconcileSettings } from "../src/parts/reconcile/settings.ts";
import { latestAsOf } from "../src/parts/reports/base/period.ts";
import { allReports } from "../src/parts/reports/catalogue/all.ts";
import { formatsOf } from "../src/parts/reports/render/formats.ts";
import { writeReport } from "../src/parts/reports/write-report.ts";
import { testKey } from "../src/parts/sandbox/engine/keys.ts";
import { createServiceClient } from "../src/core/client/service-client.ts";
import { deliver, eventsSoFar } from "./alerts/timeline-stand.ts";
import { sweep } from "./alerts/sweep-stand.ts";
import { testAlertContext, toldTo } from "./alerts/test-alert-context.ts";
import { runCommand } from "./main/cli/command-line.ts";
import { letTimePass } from "./reports/sandbox-history.ts";
import { type TestSandbox, startTestSandbox } from "./sandbox/harness.ts";
import { cloneDatabase, databaseUrl } from "./support/server-commands.ts";

const schemas = ["mirror", "reconcile", "alerts", "inbox"];
const clock = { now: () => new Date("2026-03-20T00:00:00.000Z") };
const alertContext = testAlertContext({ clock, serviceClock: clock });

let sandbox: TestSandbox;
/** Rows of every kind, to be cloned. */
let full: string;

beforeAll(async () => {
  sandbox = await startTestSandbox("nulls");
  await sandbox.control("POST", "/clock", { now: "2026-01-01T00:00:00.000Z" });
  const traffic = { orders: 40, subscriptions: 12, days: 60, seed: "nulls", chargebacks: 6 };
  await sandbox.control("POST", "/traffic", traffic);
  full = await newDatabase(inject("templateDatabase"));
  await withDatabase(full, async (db) => {
    const events = await eventsSoFar(sandbox);
    await deliver(db, alertContext, [[{ ...events[0], type: "order.odd", data: {} }], events.slice(-120)]);
    for (const kind of ["import", "full"] as const) {
      await runReconcile(db, kind);
      await db("mirror.orders").where("id", "<", "4").update({ total: 1, status: "failed" });
      await db("mirror.orders")
        .where("id", "<", "1")
        .update({ id: db.raw("'gone-' || gen_random_uuid()") });
    }
    await runReconcile(db, "full");
    await checkAll(db);
    await holdBackAll(db);
    await decideOnOne(db);
    await orderAndSilence(db);
    await sweep(db, alertContext);
    await letTimePass(db);
  });
}, 300_000);
afterAll(() => sandbox.close());

/** A storm that holds back every alert there is. */
async function holdBackAll(db: Knex): Promise<void> {
  const sums = [{ currency: "usd", amountMinor: 5n }];
  const storm = { alerts: 50, sums, codes: {}, minutes: 10, limit: 1, at: clock.now() };
  await db.transaction((trx) =>
    raise(trx, alertContext, [stormCondition(alertContext.settings, "declines", storm)], "sweep"),
  );
  await db.raw(
    `insert into alerts.storm_items (channel, alert_id, stage, storm_id, told_how)
     select 'log', a.id, a.stage, s.id, (array['alone', 'at_once', 'at_end'])[1 + a.id % 3]
     from alerts.alerts a join alerts.alerts s on s.key = 'storm:declines' where a.id <> s.id`,
  );
}

/** A run that somebody ordered, a silence that somebody ended, and a backup that was begun. */
async function orderAndSilence(db: Knex): Promise<void> {
  const [from, until] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
  await db("reconcile.run_orders").insert({
    run_key: "ordered-1",
    kind: "range",
    range_from: from,
    range_to: until,
    report_only: true,
    ordered_by: "ada@example.com",
    ended_at: until,
    outcome: "failed",
    error: "the service did not answer",
  });
  await db("alerts.silences").insert({
    rule: "decline",
    up_to_severity: "warning",
    began_at: from,
    ends_at: until,
    began_by: "ada@example.com",
    reason: "the bank is mending it",
    ended_at: until,
    ended_by: "ada@example.com",
  });
  await noteBackup(db, null);
}

const checkAll = (db: Knex) =>
  checkInvariants(db, { now: clock.now(), asOf: clock.now() }, { modes: {}, run: null, timeZone: "Europe/Berlin" });

async function newDatabase(template: string): Promise<string> {
  const name = `${inject("templateDatabase")}_${randomBytes(4).toString("hex")}`;
  await cloneDatabase(inject("serverUrl"), name, template);
  return name;
}

async function withDatabase<T>(name: string, work: (db: Knex, url: string) => Promise<T>) {
  const url = databaseUrl(inject("serverUrl"), name);
  const db = createDatabase({ url, poolMax: 4, applicationName: "test nulls" });
  try {
    return await work(db, url);
  } finally {
    await db.destroy();
  }
}

async function withService<T>(work: (deps: ServiceDeps) => Promise<T>): Promise<T> {
  const log = createLog({ level: "silent", name: "test" });
  const serviceClock = createServiceClock(wallClock);
  const random = seededRandom("nulls");
  const location = { baseUrl: sandbox.url, apiKey: testKey };
  const client = createServiceClient({ ...location, log, wallClock, serviceClock, random });
  try {
    return await work({
      client,
      log,
      random,
      clock: wallClock,
      serviceClock,
      listener: toldTo(alertContext).listener,
    });
  } finally {
    await client.close();
  }
}

type ServiceDeps = Omit<Parameters<typeof reconcile>[0], "db">;

function runReconcile(db: Knex, kind: "import" | "full"): Promise<void> {
  return withService(async (deps) => {
    const settings = { ...defaultReconcileSettings, graceMs: 0 };
    const done = await reconcile({ ...deps, db }, settings, { kind }, { onProgress: () => {} });
    expect(done.kind).toBe("done");
  });
}

/** An order that a person had written as the service shows it, of which a state is not believed. */
async function decideOnOne(db: Knex): Promise<void> {
  const orders = db("mirror.orders").whereNot("id", "like", "gone-%").orderBy("id", "desc");
  const [id = ""] = await orders.limit(1).pluck<string[]>("id");
  await withService(async (deps) => {
    const proposal = await proposeHeal({ ...deps, db }, { resource: "order", id });
    const decision = { by: "tester", reason: "spoiled" };
    expect(await applyHeal({ ...deps, db }, proposal, decision)).toBe(true);
    const states = proposal.states.map((state) => ({ ...state, isBelieved: false }));
    await db.transaction((trx) => keepUnbelieved(trx, states));
  });
}

interface Table {
  name: string;
  /** That may be null by themselves: no constraint ties them to another. */
  columns: string[];
}

async function nullableTables(db: Knex): Promise<Table[]> {
  const { rows } = await db.raw<{ rows: Table[] }>(
    `select format('%I.%I', table_schema, table_name) as name, array_agg(column_name::text order by ordinal_position) as columns
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_schema = any(?::text[]) and table_type = 'BASE TABLE' and is_nullable = 'YES' and is_generated = 'NEVER'
       and not (select relispartition from pg_class where oid = format('%I.%I', table_schema, table_name)::regclass)
     group by 1 order by 1`,
    [schemas],
  );
  return rows;
}

/** Which of them no check refuses, each by itself. */
async function freeColumns(db: Knex, { name, columns }: Table): Promise<Table> {
  const free: string[] = [];
  for (const column of columns) {
    const isFree = await db
      .transaction(async (trx) => {
        await trx.raw("set local session_replication_role = replica");
        await trx.raw(`update ${name} set ?? = null`, [column]);
        throw new Error("only tried");
      })
      .catch((error: unknown) => (error as Error).message === "only tried");
    if (isFree) free.push(column);
  }
  return { name, columns: free };
}

/** Empties, in each row, the columns that `isEmptied` names by its SQL over `n`, the row, and `row_count`. */
async function emptyColumns(
  db: Knex,
  { name, columns }: Table,
  isEmptied: (k: number, of: number) => string,
): Promise<void> {
  if (columns.length === 0) return;
  const set = columns.map(
    (column, k) => `"${column}" = case when ${isEmptied(k, columns.length)} then null else t."${column}" end`,
  );
  await db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    await trx.raw(
      `update ${name} t set ${set.join(", ")}
       from (select ctid as at, row_number() over (order by ctid) - 1 as n, count(*) over () as row_count
         from ${name}) numbered where t.ctid = at`,
    );
  });
}

interface Reading {
  /** So many rows of a kind are shown one by one. */
  shown: number;
}

/** Everything that reads rows and shows or tells them; one line for each that throws. */
async function readEverything(db: Knex, url: string, { shown }: Reading): Promise<string[]> {
  const failures: string[] = [];
  const read = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      const { message, stack = "" } = error as Error;
      failures.push(`${what}: ${message.slice(-300)} ${/ at .*src.*/.exec(stack)?.[0] ?? ""}`);
    }
  };
  const asOf = await latestAsOf(db);
  const deps = {
    db,
    clock,
    timeZone: "Europe/Berlin",
    region: "global" as const,
    write: () => Promise.resolve(),
  };
  const period = { from: "2026-01-01", to: "2026-03-31", currency: undefined, accounts: undefined };
  for (const report of allReports) {
    // The default accounts are none for beancount.
    for (const format of formatsOf(report).filter((each) => each !== "beancount")) {
      await read(`${report.name} as ${format}`, () =>
        writeReport(deps, { ...period, report, format, asOf: undefined }),
      );
    }
    await read(`${report.name} as of`, () => writeReport(deps, { ...period, report, format: "json", asOf }));
  }
  for (const [register, ...args] of [
    [registerEvents, "events", "list", "--limit", "1000"],
    [registerEvents, "events", "list", "--json"],
    [registerFindings, "findings", "list", "--all"],
    [registerFindings, "findings", "list", "--all", "--json"],
    [registerAlerts, "alerts", "list", "--all", "--limit", "1000"],
    [registerAlerts, "alerts", "list", "--all", "--json"],
    [registerReport, "report", "list"],
    [registerSecrets, "secrets", "list"],
    [registerDoctor, "doctor"],
  ] as const) {
    await read(args.join(" "), () => command(url, register, args));
  }
  for (const [register, name, table, id] of [
    [registerEvents, "events", "inbox.receipts", "seq"],
    [registerFindings, "findings", "reconcile.findings", "id"],
    [registerAlerts, "alerts", "alerts.alerts", "id"],
  ] as const) {
    const ids = await db(table).orderBy(id).limit(shown).pluck<string[]>(id);
    for (const one of ids) {
      await read(`${name} show ${one}`, () => command(url, register, [name, "show", one]));
    }
  }
  await read("the rules of alerts", () => db.transaction((trx) => assessAll(trx)));
  await read("the sweep", () => sweep(db, alertContext));
  await read("the end of a run", () => endRun(db));
  await read("identities", () => checkAll(db));
  await read("reconciliation", () => runReconcile(db, "full"));
  const undescribed = await db("alerts.alerts").where("rule", "alert_undescribed").pluck<string[]>("key");
  return [...failures, ...undescribed];
}

async function command(
  url: string,
  register: Parameters<typeof runCommand>[0],
  args: readonly string[],
): Promise<void> {
  const { error } = await runCommand(register, [...args], { env: { DATABASE_URL: url } });
  if (error !== null) throw error as Error;
}

async function assessAll(trx: Knex.Transaction): Promise<void> {
  const ids = async (table: string) => new Set(await trx(`mirror.${table}`).pluck<string[]>("id"));
  const [orders, transactions, subscriptions] = [
    await ids("orders"),
    await ids("transactions"),
    await ids("subscriptions"),
  ];
  await assessAffected(
    trx,
    alertContext,
    {
      declinedOrders: orders,
      failedOrders: orders,
      disputed: new Set([...orders, ...transactions]),
      orders,
      transactions,
      subscriptions,
      unsettled: subscriptions,
      unknownValues: new Map(),
    },
    "reconciliation",
  );
}

const endRun = (db: Knex): Promise<void> =>
  assessRun({ db, log: createLog({ level: "silent", name: "test" }) }, alertContext, {
    id: 1,
    kind: "nightly",
    isInitialImport: false,
    complete: false,
    error: null,
    healed: {},
    left: { mismatch: 1 },
    acknowledged: {},
    amountAtRiskMinor: { usd: 5n },
    slices: { failed: 0, pending: 0 },
    confirmed: {},
  });

test("there are rows to empty in every table, and nearly every column that may be null is free to be", async () => {
  await withDatabase(full, async (db) => {
    const tables = await nullableTables(db);
    const empty: string[] = [];
    for (const { name } of tables) {
      if ((await db(name).count().first())?.["count"] === "0") empty.push(name);
    }
    // No report, message or command here reads these, or none of their columns that may be null.
    expect(empty).toEqual([
      "inbox.tasks",
      "mirror.erasure_log",
      "mirror.restores",
      "reconcile.endpoint_calls",
      "reconcile.endpoints",
    ]);
    const free = await Promise.all(tables.map((table) => freeColumns(db, table)));
    const all = (of: Table[]) => of.flatMap(({ columns }) => columns).length;
    expect(all(free)).toBeGreaterThan(0.9 * all(tables));
    const of = (name: string) => free.find((table) => table.name === name)?.columns;
    expect(of("mirror.orders")).toEqual(expect.arrayContaining(["total", "currency", "created_at"]));
    expect(of("alerts.alerts")).toEqual(expect.arrayContaining(["amount_minor", "currency"]));
  });
});

describe("whatever may be null may be null: everything reads", () => {
  const readAfter = async (
    isEmptied: (k: number, of: number) => string,
    reading: Reading = { shown: 30 },
  ): Promise<string[]> => {
    const name = await newDatabase(full);
    return withDatabase(name, async (db, url) => {
      const tables = await Promise.all((await nullableTables(db)).map((table) => freeColumns(db, table)));
      for (const table of tables) await emptyColumns(db, table, isEmptied);
      return readEverything(db, url, reading);
    });
  };

  // A row that lacks one column is as it is in all others: what fails for rows as they are fails there as well.
  test.runIf(inject("isTorture"))(
    "rows as they are",
    async () => {
      expect(await readAfter(() => "false")).toEqual([]);
    },
    300_000,
  );

  test("rows that each lack one column, another one in the next row; of few rows, each lacks some", async () => {
    const lacks = (k: number, of: number) => `n % least(row_count, ${of}) = ${k} % least(row_count, ${of})`;
    expect(await readAfter(lacks)).toEqual([]);
  }, 300_000);

  test.runIf(inject("isTorture")).each([0, 1, 2])(
    "rows that each lack one column, those of a third in turn (%i)",
    async (round) => {
      expect(await readAfter((k, of) => `(n * 3 + ${round}) % ${of} = ${k}`)).toEqual([]);
    },
    300_000,
  );

  // Beside no row with anything, and rows that lack one column, it is the least likely to find what they do not.
  test.runIf(inject("isTorture"))(
    "every other row without anything that may be null",
    async () => {
      expect(await readAfter(() => "n % 2 = 1")).toEqual([]);
    },
    300_000,
  );

  test("no row with anything that may be null", async () => {
    // All rows lack the same: a few show what all do.
    const shown = inject("isTorture") ? 30 : 6;
    expect(await readAfter(() => "true", { shown })).toEqual([]);
  }, 300_000);
});
