import type { Knex } from "knex";
import { type AlertContext, wordingOf } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import { readWatermark, writeWatermark } from "../store.ts";
import type { Condition } from "../timeline.ts";
import {
  type EventHour,
  type Missing,
  missingEvents,
  missingRenewals,
  missingRetries,
  missingRun,
  neverScheduled,
  absenceEnds,
  hourWithoutEvents,
  stopped,
} from "./absence.ts";

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;
const minuteMs = 60_000;

/** A first start may take its time to reach the queue. The scheduler beats every minute. */
const schedulerGraceMinutes = 10;

/** What a sweep has to know of others. Alerts are told: they ask nobody themselves. */
export interface SweepQuestions {
  /** When the last run that answers for everything began; null where there was none. */
  lastWholeRun(db: Knex): Promise<Date | null>;
}

/**
 * Looks for what should have happened and did not: by the service's clock where the service should have done it, by this
 * machine's where we should have. Needs a transaction; idempotent.
 */
export async function watchAbsence(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  questions: SweepQuestions,
): Promise<void> {
  const absences = await findAbsences(trx, alertContext, questions);
  const unsure = await notKnownYet(trx);
  await raise(
    trx,
    alertContext,
    absences.filter(({ key }) => !unsure.has(key)),
    "sweep",
  );
  const at = alertContext.serviceClock.now();
  const silent = new Set(absences.map(({ key }) => key));
  const over = Object.entries(absenceEnds).filter(([key]) => !silent.has(key));
  await clear(
    trx,
    alertContext,
    over.map(([key, end]) => ({ key, end, at })),
    "sweep",
  );
}

/** What cannot be said to be missing while what arrived has not been looked at: after a time away, or in a rush. */
async function notKnownYet(trx: Knex): Promise<ReadonlySet<string>> {
  const unsure = new Set<string>();
  if (await isApplyingLate(trx)) unsure.add("silence:retry").add("silence:renewal");
  if (!(await isInboxScanned(trx))) unsure.add("silence:events");
  return unsure;
}

async function findAbsences(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { lastWholeRun }: SweepQuestions,
): Promise<Condition[]> {
  const { rules } = alertContext.settings;
  const serviceNow = alertContext.serviceClock.now();
  const context = { ...wordingOf(alertContext), at: serviceNow };
  const hoursAgo = (hours: number) => new Date(serviceNow.getTime() - hours * hourMs);
  const found: Condition[] = [];

  const retries = await findMissingRetries(trx, hoursAgo(rules.silence_retry.afterHours));
  if (retries !== null) found.push(missingRetries(retries, context));
  const renewals = await findMissingRenewals(trx, hoursAgo(rules.silence_renewal.afterHours));
  if (renewals !== null) found.push(missingRenewals(renewals, context));

  const { weeks } = rules.silence_events;
  const since = new Date(serviceNow.getTime() - weeks * weekMs - 2 * hourMs);
  const hour = hourWithoutEvents(
    await findEventHours(trx, since),
    rules.silence_events,
    serviceNow,
  );
  if (hour !== null) found.push(missingEvents(hour, context));

  const wallNow = alertContext.clock.now();
  const { afterMinutes } = rules.silence_worker;
  const watch = await keepWatch(trx, wallNow, afterMinutes);
  const isWatched = wallNow.getTime() - watch.since.getTime() >= afterMinutes * minuteMs;
  for (const kind of ["worker", "scheduler"] as const) {
    const missing = await findStopped(trx, { prefix: kind, afterMinutes });
    if (missing !== null && isWatched) found.push(stopped(kind, missing, context));
  }

  // None is missed that never came, but this one comes with the first worker: it is waited for since sweeps began.
  const watchedMs = wallNow.getTime() - watch.first.getTime();
  const isLate = isWatched && watchedMs >= schedulerGraceMinutes * minuteMs;
  if (isLate && !(await hasBeaten(trx, schedulerBeat))) {
    found.push(neverScheduled(watch.first, context));
  }

  const last = await lastWholeRun(trx);
  const lateMs = rules.reconcile_missing.afterHours * hourMs;
  if (wallNow.getTime() - (last ?? watch.first).getTime() > lateMs) {
    found.push(missingRun({ last, watchedSince: watch.first }, { ...context, at: wallNow }));
  }
  return found;
}

/** Since when somebody watches, by this machine's clock. */
export interface Watch {
  /** Ever. */
  first: Date;
  /** Without a gap: nobody was there to beat, or to be heard, while no sweep ran. */
  since: Date;
}

interface Mark {
  first: string;
  since: string;
  seen: string;
}

/** Says that a sweep looks now, and since when sweeps have looked no more than `gapMinutes` apart. */
async function keepWatch(trx: Knex.Transaction, now: Date, gapMinutes: number): Promise<Watch> {
  const last = await readWatermark<Mark>(trx, "watch");
  // A clock that was ahead and is set right leaves times of the future, by which nothing would be missed until then.
  const isGap =
    last === null || Math.abs(now.getTime() - Date.parse(last.seen)) > gapMinutes * 60_000;
  const first =
    last === null || Date.parse(last.first) > now.getTime() ? now : new Date(last.first);
  const since = isGap ? now : new Date(last.since);
  await writeWatermark(trx, "watch", { first, since, seen: now });
  return { first, since };
}

/** The name under which the scheduler is known: a task of the queue beats for it. */
export const schedulerBeat = "scheduler";

/** Says that somebody lives. One statement. */
export async function beat(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats")
    .insert({ name, beat_at: db.fn.now() })
    .onConflict("name")
    .merge(["beat_at"]);
}

export interface Heartbeats {
  /** Of each worker that did not end as it should: for how long nothing was heard of it. */
  workerAgesSeconds: number[];
  /** Null: it has never run a task. */
  schedulerAgeSeconds: number | null;
}

/** Who lives. One statement. */
export async function readHeartbeats(db: Knex): Promise<Heartbeats> {
  const { rows } = await db.raw<{ rows: { name: string; age: number }[] }>(
    "select name, extract(epoch from now() - beat_at)::float8 as age from alerts.heartbeats order by beat_at desc",
  );
  return {
    workerAgesSeconds: rows.filter(({ name }) => name.startsWith("worker:")).map(({ age }) => age),
    schedulerAgeSeconds: rows.find(({ name }) => name === schedulerBeat)?.age ?? null,
  };
}

/** Says that somebody ends as it should: nobody waits for it. */
export async function leave(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").where({ name }).delete();
}

interface MissingRow {
  n: string;
  oldest: Date | null;
  examples: string[] | null;
}

const missingOf = (row: MissingRow | undefined): Missing | null =>
  row === undefined || row.oldest === null
    ? null
    : { count: Number(row.n), oldest: row.oldest, examples: row.examples ?? [] };

/** Retries that were due before `dueBefore` (service time) and of which no attempt is known. One statement. */
async function findMissingRetries(db: Knex, dueBefore: Date): Promise<Missing | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(o.next_retry_at) as oldest,
            (array_agg('order ' || coalesce(o.order_number, o.id) order by o.next_retry_at, o.id))[1:10] as examples
     from mirror.orders o left join mirror.subscriptions s on s.id = o.subscription_id
     where o.status = 'failed' and o.next_retry_at is not null and o.next_retry_at < ?
       and coalesce(s.status, '') not in ('canceled', 'completed')
       and not exists (select from mirror.transactions t
                       where t.order_id = o.id and t.type = 'sale' and t.created_at >= o.next_retry_at)`,
    [dueBefore],
  );
  return missingOf(rows[0]);
}

/** Active subscriptions whose billing date passed before `dueBefore` (service time) without an order. One statement. */
async function findMissingRenewals(db: Knex, dueBefore: Date): Promise<Missing | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(s.next_billing_date) as oldest,
            (array_agg('subscription ' || s.id order by s.next_billing_date, s.id))[1:10] as examples
     from mirror.subscriptions s
     where s.status = 'active' and s.next_billing_date < ? and s.deleted_at is null
       and not exists (select from mirror.orders o
                       where o.subscription_id = s.id and o.created_at >= s.next_billing_date - interval '1 day')`,
    [dueBefore],
  );
  return missingOf(rows[0]);
}

/** How many events the hours since then brought, by the service's clock. One statement. */
const findEventHours = async (db: Knex, since: Date): Promise<EventHour[]> => {
  const rows = await db("alerts.event_hours")
    .where("hour", ">=", since)
    .select<{ hour: Date; events: string }[]>("hour", "events");
  return rows.map(({ hour, events }) => ({ hour, events: Number(events) }));
};

/** Of whom nothing was heard for so long, by the names that begin so. One statement. */
async function findStopped(
  db: Knex,
  { prefix, afterMinutes }: { prefix: string; afterMinutes: number },
): Promise<Missing | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(beat_at) as oldest, (array_agg(name order by beat_at, name))[1:10] as examples
     from alerts.heartbeats where starts_with(name, ?) and beat_at < now() - make_interval(mins => ?)`,
    [prefix, afterMinutes],
  );
  return missingOf(rows[0]);
}

/** Whether anything was ever heard of one of this name. One statement. */
const hasBeaten = async (db: Knex, name: string): Promise<boolean> =>
  (await db("alerts.heartbeats").where({ name }).first("name")) !== undefined;

/**
 * Whether what arrived some minutes ago has still not been applied: then the mirror is behind, and what it lacks may be
 * waiting. One statement.
 */
async function isApplyingLate(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { late: boolean }[] }>(
    `select exists (
       select from (select seq from inbox.progress where state = 'received' order by seq limit 1) oldest
       join inbox.receipts r using (seq) where r.received_at < now() - interval '2 minutes') as late`,
  );
  return rows[0]?.late === true;
}

/** Whether the look through the inbox has come to its end: what it has not seen may be of any hour. One statement. */
async function isInboxScanned(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { left: boolean }[] }>(
    `select exists (
       select from inbox.receipts
       where seq > coalesce((select (value->>'seq')::bigint from alerts.marks where name = 'inbox'), 0)) as left`,
  );
  return rows[0]?.left !== true;
}
