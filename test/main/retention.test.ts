import { readFile } from "node:fs/promises";
import type { Knex } from "knex";
import { expect, inject, test } from "vitest";
import { remember } from "../../src/parts/alerts/rules/unknown-values.ts";
import { alertTasks } from "../../src/parts/alerts/run-alerts.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { retentionTask } from "../../src/parts/reconcile/reconciliation.ts";
import { retentionTasks } from "../../src/app/retention.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import { createLog } from "../../src/platform/log.ts";
import { migratedSchemas } from "../../src/platform/postgres/schema-objects.ts";
import { storeChange } from "../feed/stored-changes.ts";
import { openInbox } from "../inbox/inbox-stand.ts";
import { verifiedEvent } from "../inbox/stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";

const dayMs = 86_400_000;
const database = useTestDatabase();
const log = createLog({ level: "silent", name: "test" });

/** The tables that grow day by day, and are the same size for ever once they are as old as what is kept. */
const bounded = [
  "alerts.alerts",
  "alerts.digest_items",
  "alerts.event_hours",
  "alerts.history",
  "alerts.outbox",
  "alerts.seen_values",
  "alerts.storm_items",
  "feed.changes",
  "inbox.progress",
  "inbox.receipts",
  "inbox.seen",
  "people.attempts",
  "people.sessions",
  "people.sign_in_links",
  "receiver.answers_by_minute",
  "reconcile.doubts",
] as const;

const page = new URL("../../docs/operations.md", import.meta.url);

test("the page says of every table how long its rows are kept", async () => {
  const text = await readFile(page, "utf8");
  const [, section = ""] = text.split("\n## Retention\n");
  const [says = ""] = section.split("\n## ");
  const named = new Set([...says.matchAll(/`([a-z_]+\.[a-z_]+)`/g)].map(([, name]) => name));
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
    `select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in (${migratedSchemas.map((name) => `'${name}'`).join(", ")})
       and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  expect(rows.map(({ name }) => name).filter((name) => !named.has(name))).toEqual([]);
});

/** How many days pass between two looks. */
const stepDays = inject("isTorture") ? 5 : 40;

test("from the second year on no table grows, but those that are kept for ever", async () => {
  const { db } = database;
  const start = new Date();
  let now = start;
  const tasks = await hourlyTasks(() => now);
  const inbox = openInbox(database.url);
  const sizes: Record<string, number>[] = [];
  for (let day = 0; day <= 840; day += stepDays) {
    now = new Date(start.getTime() + day * dayMs);
    await live(db, now, day / stepDays);
    await storeChange(db, { recordedAt: now });
    for (const createdAt of [now.toISOString(), null]) {
      const event = verifiedEvent({ createdAt });
      await inbox.appender.append(event);
      await db("inbox.receipts").where("event_id", event.eventId).update({ received_at: now });
    }
    // The very first event is dead, and nobody looks after it.
    await db("inbox.progress")
      .where({ state: "received" })
      .update({ state: day === 0 ? "dead" : "applied" });
    for (const run of tasks) await run();
    sizes.push(await rowsOf(db));
  }
  await inbox.close();
  const most = (from: number, to: number, table: string): number =>
    Math.max(...sizes.slice(from / stepDays, to / stepDays).map((size) => size[table] ?? 0));
  for (const table of bounded) {
    expect(most(520, 680, table), table).toBeGreaterThan(0);
    expect(most(680, 841, table), table).toBeLessThanOrEqual(most(520, 680, table));
  }
  const newest = await db("alerts.alerts").where("key", "silence:events").pluck("occurrence");
  expect(newest, "the numbers of a condition go on").toEqual([1]);
});

async function hourlyTasks(now: () => Date): Promise<(() => Promise<void>)[]> {
  const clock = { now };
  const config = { ...loadConfig(database.environment).config, eventsKeepDays: 90 };
  const runtime = {
    config,
    log,
    db: async () => database.db,
    wallClock: clock,
    serviceClock: clock,
  };
  const all = {
    ...(await retentionTasks(runtime, async () => now())),
    ...(await alertTasks(runtime as unknown as Runtime, async () => now())),
    "reconcile-retention": retentionTask({ db: database.db, log }, async () => now()),
  };
  const never = new AbortController().signal;
  return Object.entries(all)
    .filter(([name]) => name !== "scheduler-beat")
    .map(
      ([, { run }]) =>
        () =>
          run(never),
    );
}

async function rowsOf(db: Knex): Promise<Record<string, number>> {
  const { rows } = await db.raw<{ rows: [Record<string, number>] }>(
    `select ${bounded.map((name) => `(select count(*) from ${name})::int as "${name}"`).join(", ")}`,
  );
  return rows[0];
}

/** What happens, told in rows: a hundred declines, half of them paid, a storm that listed them, a night's run. */
async function live(db: Knex, now: Date, step: number): Promise<void> {
  const bindings = { now, step };
  await db.raw(
    `with declined as (
       insert into alerts.alerts (key, rule, severity, state, stage, opened_at, updated_at, resolved_at, found_by, created_at)
       select 'decline:' || :step || ':' || n, 'decline', 'warning', case when n <= 50 then 'resolved' else 'open' end,
              'attempt:1', :now::timestamptz, :now, case when n <= 50 then :now::timestamptz end, 'event', :now
       from generate_series(1, 100) n returning id, state
     ), storm as (
       insert into alerts.alerts (key, occurrence, rule, severity, state, stage, opened_at, updated_at, resolved_at,
                                  found_by, created_at)
       values ('storm:declines', :step + 1, 'decline_storm', 'critical', 'resolved', 'resolved', :now, :now, :now, 'sweep', :now)
       returning id
     ), silence as (
       insert into alerts.alerts (key, occurrence, rule, severity, state, stage, opened_at, updated_at, resolved_at,
                                  found_by, created_at)
       select 'silence:events', 1, 'silence_events', 'critical', 'resolved', 'resolved', :now, :now, :now, 'sweep', :now
       where :step = 0
     ), history as (
       insert into alerts.history (alert_id, change, stage, at, recorded_at, found_by)
       select id, 'opened', 'attempt:1', :now::timestamptz, :now::timestamptz, 'event' from declined
       union all select id, 'resolved', 'recovered', :now, :now, 'event' from declined where state = 'resolved'
       union all select id, 'resolved', 'resolved', :now, :now, 'sweep' from storm
     ), told as (
       insert into alerts.outbox (channel, alert_id, stage, action, message, state, created_at)
       select 'team', id, 'attempt:1', 'trigger', '{"title": "Jane"}'::jsonb,
              (array['sent', 'dropped', 'failed'])[1 + id % 3], :now::timestamptz from declined
       union all select 'team', null, 'digest:' || :step, 'trigger', '{"title": "Jane"}', 'sent', :now
     ), listed as (
       insert into alerts.digest_items (channel, alert_id, stage, queued_at, told_at)
       select 'team', id, 'attempt:1', :now::timestamptz, :now::timestamptz from declined
     )
     insert into alerts.storm_items (channel, alert_id, stage, storm_id, told_how, queued_at, told_at)
     select 'team', d.id, 'attempt:1', s.id, 'at_end', :now::timestamptz, :now::timestamptz from declined d, storm s`,
    bindings,
  );
  await remember(
    db,
    Array.from({ length: 1_000 }, (_, n) => ({ kind: "order.status", value: `${step} ${n}` })),
  );
  await db.raw(
    `insert into alerts.event_hours (hour, events)
     select :now::timestamptz - n * interval '1 hour', 1 from generate_series(1, 10) n`,
    bindings,
  );
  await db.raw(
    `insert into receiver.answers_by_minute (minute, reason, times)
     select :now::timestamptz - n * interval '1 minute', 'accepted', 1 from generate_series(1, 10) n`,
    bindings,
  );
  await db.raw(
    `with run as (
       insert into reconcile.runs (run_key, kind, t0, state) values ('night ' || :step, 'nightly', :now, 'running')
       returning id
     )
     insert into reconcile.doubts (run, resource, id, why, due_at, noticed_at, recorded_at, state, outcome)
     select id, 'order', 'o' || n, 'open_item', :now, :now, :now, 'settled', 'equal' from run, generate_series(1, 20) n`,
    bindings,
  );
  await db.raw("update reconcile.doubts set settled_at = recorded_at where recorded_at = :now", bindings);
  await db.raw(
    `with account as (
       insert into people.accounts (email, roles) values ('p' || :step || '@example.com', '{}') returning id
     ), session as (
       insert into people.sessions (token_hash, account_id, account_version, method, address, user_agent, began_at,
                                    last_seen_at)
       select sha256(id::text::bytea), id, 1, 'link', '', '', :now::timestamptz, :now::timestamptz from account
     ), link as (
       insert into people.sign_in_links select sha256(id::text::bytea), id, :now::timestamptz + interval '10 minutes'
       from account
     )
     insert into people.attempts values ('address:' || :step, 1, extract(epoch from :now::timestamptz) * 1000 + 900000)`,
    bindings,
  );
}
