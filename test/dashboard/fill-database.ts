import type { Knex } from "knex";
import { beginSilence } from "../../src/parts/alerts/silences.ts";
import { sweepAlerts } from "../../src/parts/alerts/run-alerts.ts";
import { createServiceClient } from "../../src/core/client/service-client.ts";
import { pauseHandler } from "../../src/parts/delivery/dispatch/manage-handlers.ts";
import { rememberEndpoint } from "../../src/parts/endpoint/endpoints.ts";
import { sweepQuestions } from "../alerts/sweep-questions.ts";
import { changeAccount, createAccount } from "../../src/app/people/accounts.ts";
import { addNote, changeCase } from "../../src/app/people/cases.ts";
import { createServiceClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { recordFindings } from "../../src/parts/reconcile/findings/findings.ts";
import { reconcile } from "../../src/parts/reconcile/reconcile.ts";
import { defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { programmesNear } from "../../src/parts/reports/catalogue/network-monitor/programmes-near.ts";
import { defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { closeMonth } from "../../src/parts/reports/close/close-month.ts";
import { prepareMonth } from "../../src/parts/reports/close/prepare-month.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { testAlertContext, toldTo } from "../alerts/test-alert-context.ts";
import { registerHandler } from "../dispatch/dispatch-stand.ts";
import { storeRun } from "../dispatch/stored-runs.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { resealCloses } from "../reports/close/reseal-closes.ts";
import { startDeliveries } from "../reconcile/deliveries.ts";
import { type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { applyDeps } from "../worker/worker-stand.ts";

/** The time at which everything stands: of the dashboard's clocks and of the sandbox. */
const filledAt = new Date("2026-11-22T12:00:00Z");

export const filledClock = { now: () => filledAt };

const hourMs = 3_600_000;
const log = createLog({ level: "silent", name: "test" });
const alertContext = testAlertContext({ clock: filledClock, serviceClock: filledClock });

/**
 * Fills an empty database with a merchant's weeks at the sandbox: events of which some were lost, reconciliation,
 * findings, alerts, handlers' runs, people and what they look after. The sandbox's state is kept in `stand.sandbox`.
 * The same each time, but for ids that the database makes by itself.
 */
export async function fillDatabase(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: { now: Date }[] }>("select now()");
  const begunAt = rows[0]?.now ?? new Date();
  const sandbox = await startTestSandbox("dashboard", { wallClock: filledClock });
  try {
    await sandbox.control("POST", "/traffic", {
      orders: 60,
      subscriptions: 16,
      chargebacks: 5,
      declines: 6,
      days: 45,
      past: true,
      seed: "dashboard",
    });
    await deliver(db, sandbox);
    await reconcileAll(db, sandbox.url, { kinds: ["full", "nightly"] });
    await refusedEvents(db);
    await someFindings(db);
    await handlers(db);
    await answers(db);
    while ((await sweepAlerts({ db, log, ...sweepQuestions, programmesNear }, alertContext)).more);
    await undelivered(db);
    await people(db);
    await endpoint(db, sandbox);
    await db.raw("create schema stand");
    await db.raw("create table stand.sandbox (state jsonb)");
    const { state } = await sandbox.control("GET", "/snapshot");
    await db("stand.sandbox").insert({ state: JSON.stringify(state) });
  } finally {
    await sandbox.close();
  }
  await moveToFilledAt(db, begunAt);
  await months(db);
  await db.raw("analyze");
}

/** One month is closed, and the next prepared for another person to close. */
async function months(db: Knex): Promise<void> {
  const settings = { timeZone: "UTC", accounts: defaultAccounts, reason: "the first months" };
  await closeMonth(db, { ...settings, month: "2026-09", by: "finance@example.com" });
  await db.transaction(async (trx) => {
    // A close is not of the same minute as the one before it.
    await trx.raw("set local session_replication_role = replica");
    await trx("reports.closes").update({ closed_at: trx.raw("closed_at - interval '1 hour'") });
    await resealCloses(trx);
  });
  const by = { name: "finance@example.com", accountId: null };
  await prepareMonth(db, { ...settings, month: "2026-10", by });
}

/** Registered at the service, at an address where nobody answers. */
async function endpoint(db: Knex, sandbox: TestSandbox): Promise<void> {
  const url = "http://127.0.0.1:9/webhooks";
  const body = { url, enabled_events: ["*"] };
  const { id } = await sandbox.ok("POST", "/v1/webhook_endpoints", body);
  await rememberEndpoint(db, { id, url, secretId: null, rotationEndsAt: null });
}

/** All that the sandbox announced but every twelfth event, which got lost for good. */
async function deliver(db: Knex, sandbox: TestSandbox): Promise<void> {
  let n = 0;
  await startDeliveries(db, sandbox, () => ++n % 12 === 0).deliver();
}

interface Runs {
  kinds: readonly ("full" | "nightly")[];
  reportOnly?: boolean;
}

/** Finds what got lost, and heals it; with `reportOnly` it only finds. */
export async function reconcileAll(db: Knex, baseUrl: string, { kinds, reportOnly = false }: Runs): Promise<void> {
  const random = seededRandom("dashboard");
  // A story moves the service's clock, and the run's goes with it.
  const serviceClock = createServiceClock(filledClock);
  const client = createServiceClient({
    baseUrl,
    apiKey: testKey,
    log,
    wallClock: filledClock,
    serviceClock,
    random,
  });
  try {
    const deps = { db, client, log, random, ...toldTo(alertContext), serviceClock };
    const settings = { ...defaultReconcileSettings, graceMs: 0, reportOnly };
    for (const kind of kinds) await reconcile(deps, settings, { kind });
  } finally {
    await client.close();
  }
}

/** What could not be applied: broken bytes, an order that cannot be read, and one that waits for its next attempt. */
async function refusedEvents(db: Knex): Promise<void> {
  const [order] = await db("mirror.orders").orderBy("created_at", "desc").limit(1).pluck("id");
  const broken = await storeRow(db, {
    eventId: "evt_broken",
    type: "order.updated",
    createdAt: at(-2),
    raw: Buffer.from('{"id":"evt_broken","type":"order.updated","data":{"object":{"id":'),
  });
  const unreadable = await storeRow(db, {
    eventId: "evt_unreadable",
    type: "order.updated",
    createdAt: at(-1),
    raw: Buffer.from(
      JSON.stringify({
        id: "evt_unreadable",
        type: "order.updated",
        created_at: at(-1),
        data: { object: { id: order, total: "a lot", updated_at: at(-1) } },
      }),
    ),
  });
  await applyBatch({ ...applyDeps(db), isClockMovable: true }, [broken, unreadable]);
  await storeRow(db, {
    eventId: "evt_waits",
    type: "order.paid",
    createdAt: at(-0.1),
    state: "failed",
    attempts: 3,
    dueInSeconds: 600,
    reason: "not tried: a lock was held",
    resourceType: "order",
    resourceId: order,
  });
}

/** Findings that no run can heal: one in each state. */
async function someFindings(db: Knex): Promise<void> {
  const orders = await db("mirror.orders")
    .where("status", "succeeded")
    .orderBy("created_at")
    .limit(2)
    .select<{ id: string; currency: string; total: string }[]>("id", "currency", "total");
  await recordFindings(
    db,
    { run: null, seenAt: new Date(filledAt.getTime() - 20 * hourMs) },
    orders.map(({ id, currency, total }, n) => ({
      key: `paid-twice/${id}`,
      class: n === 0 ? ("mismatch" as const) : ("identity" as const),
      identity: n === 0 ? null : "order_total",
      severity: n === 0 ? ("critical" as const) : ("high" as const),
      resource: "order",
      objectId: id,
      differences: [
        { field: "total", service: Number(total), mirror: Number(total) - 500 },
        { field: "status", service: "succeeded", mirror: "refunded" },
      ],
      amountAtRiskMinor: 500n,
      currency,
      cause: "unexplained" as const,
      evidence: {},
    })),
  );
}

async function handlers(db: Knex): Promise<void> {
  const [order] = await db("mirror.orders").orderBy("created_at", "desc").limit(1).pluck("id");
  for (const name of ["receipts", "warehouse"]) {
    await registerHandler(db, { name, from: "now" });
  }
  await storeRun(db, {
    seq: 1,
    id: order,
    state: "dead",
    error: "Error: the mail server said 550 5.1.1 user unknown",
  });
  await storeRun(db, { seq: 2, id: order, isFirst: false });
  await storeRun(db, { handler: "warehouse", seq: 3, id: order });
  await registerHandler(db, { name: "ledger", from: "now" });
  await pauseHandler(db, "ledger", "the books are being closed");
  await beginSilence(db, {
    of: { rule: "handler_dead" },
    upTo: "error",
    hours: 8,
    by: "ada@example.com",
    reason: "the mail server is being moved",
  });
}

/** The newest alert has a message that was given up, so that its page shows it. */
async function undelivered(db: Knex): Promise<void> {
  await db.raw(
    `insert into alerts.outbox (channel, alert_id, stage, action, message, state, attempts, last_error)
     select channel, (select max(id) from alerts.alerts), 'undelivered', action, message, 'failed', 12, 'answered 500'
     from alerts.outbox where action = 'trigger' order by id desc limit 1`,
  );
}

async function answers(db: Knex): Promise<void> {
  const minutes = Array.from({ length: 30 }, (_, n) => new Date(filledAt.getTime() - n * 60_000));
  const hours = Array.from({ length: 7 * 24 - 2 }, (_, n) => new Date(filledAt.getTime() - (n + 1) * hourMs));
  await db("receiver.answers_by_minute").insert([
    // Busier by day; for two hours another secret was in use, and the service sent again what had been refused.
    ...hours.flatMap((minute, n) => {
      const times = 480 + Math.round(360 * Math.sin((minute.getUTCHours() - 9) / 3.8)) + ((n * 37) % 90);
      return n === 60 || n === 61
        ? [{ minute, reason: "no_match", times }]
        : [{ minute, reason: "accepted", times: n === 59 ? times * 2 : times }];
    }),
    ...minutes.flatMap((minute, n) => [
      { minute, reason: "accepted", times: 20 + ((n * 7) % 13) },
      ...(n % 5 === 0 ? [{ minute, reason: "duplicate", times: 2 }] : []),
      ...(n === 12 ? [{ minute, reason: "no_match", times: 3 }] : []),
    ]),
  ]);
}

/** Who works with it, and what they look after. */
async function people(db: Knex): Promise<void> {
  const accounts = {
    "grace@example.com": ["admin"],
    "ada@example.com": ["support"],
    "lin@example.com": ["operator"],
    "joan@example.com": ["finance"],
  } as const;
  await db.transaction(async (trx) => {
    for (const [email, roles] of Object.entries(accounts)) {
      await createAccount(trx, { email, roles, passwordHash: null });
    }
    const former = { email: "ned@example.com", roles: ["support"], passwordHash: null } as const;
    const { id } = await createAccount(trx, former);
    await changeAccount(trx, id, { isDisabled: true, now: filledAt });
    const [ada] = await trx("people.accounts").where({ email: "ada@example.com" }).pluck("id");
    const actor = {
      accountId: Number(ada),
      name: "ada@example.com",
      via: "dashboard",
      address: "203.0.113.7",
    } as const;
    const [declined] = await trx("mirror.orders")
      .where({ status: "failed" })
      .whereNotNull("subscription_id")
      .orderBy("created_at", "desc")
      .limit(1)
      .pluck("id");
    const [disputed] = await trx("mirror.orders").where({ status: "chargeback" }).limit(1).pluck("id");
    const subjects = [
      { kind: "dunning", id: declined },
      { kind: "chargeback", id: disputed },
    ] as const;
    for (const subject of subjects) {
      if (subject.id === undefined) continue;
      const decided = { decidedOn: 0, now: new Date(filledAt.getTime() - 3 * hourMs) };
      await changeCase(trx, actor, subject, { assignee: Number(ada) }, decided);
      const text = "Wrote to the customer; she has a new card and will enter it tonight.";
      await addNote(trx, actor, subject, { text, now: decided.now });
    }
  });
}

const at = (hours: number): string => new Date(filledAt.getTime() + hours * hourMs).toISOString();

/**
 * What the database dated by its own clock while it was filled happened around `filledAt`, and events arrived a moment
 * after their own time and were applied at once.
 */
async function moveToFilledAt(db: Knex, begunAt: Date): Promise<void> {
  await db.transaction(async (trx) => {
    // Only so may history be dated otherwise.
    await trx.raw("set local session_replication_role = replica");
    const { rows } = await trx.raw<{ rows: { place: string; name: string }[] }>(
      `select format('%I.%I', table_schema, table_name) as place, quote_ident(column_name) as name
       from information_schema.columns join information_schema.tables using (table_schema, table_name)
       where data_type = 'timestamp with time zone' and is_generated = 'NEVER' and table_type = 'BASE TABLE'
         and table_schema not in ('pg_catalog', 'information_schema')
         and not exists (select from pg_inherits
                         where inhrelid = format('%I.%I', table_schema, table_name)::regclass)`,
    );
    for (const { place, name } of rows) {
      await trx.raw(
        `update ${place} set ${name} = ${name} + (?::timestamptz - now())
         where ${name} between ?::timestamptz - interval '1 minute' and now() + interval '1 hour'`,
        [filledAt, begunAt],
      );
    }
    for (const [table, created, arrived] of [
      ["inbox.receipts", "event_created_at", "received_at"],
      ["inbox.progress", "event_at", "arrived_at"],
    ]) {
      await trx.raw(
        `update ${table} set ${arrived} = least(${created} + interval '1.4 seconds', ?) where ${created} is not null`,
        [filledAt],
      );
    }
    await trx.raw(
      `update inbox.progress set settled_at = least(arrived_at + interval '90 milliseconds', ?)
       where settled_at is not null`,
      [filledAt],
    );
  });
}
