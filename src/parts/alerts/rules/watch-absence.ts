import type { Knex } from "knex";
import { readBackups, unsavedMs } from "../../../core/mirror/backups.ts";
import { isCatchingUp } from "../../../core/mirror/restores.ts";
import { type AlertContext, wordingOf, zoneOf } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import { readWatermark, writeWatermark } from "../store.ts";
import type { Condition } from "../timeline.ts";
import {
  type EventHour,
  type AbsentThings,
  missingBackup,
  missingEvents,
  missingRenewals,
  missingRetries,
  missingRun,
  neverScheduled,
  absenceEnds,
  absentReceiver,
  hourWithoutEvents,
  missingHeartbeats,
} from "./absence.ts";

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;
const minuteMs = 60_000;

/** A first start may take a while to reach the queue. The scheduler sends a heartbeat every minute. */
const schedulerGraceMinutes = 10;

/** What is asked of reconciliation and of the receivers. */
export interface AbsenceQuestions {
  /** When the last run that answers for everything began; null where there was none. */
  lastFullAnswerStart(db: Knex): Promise<Date | null>;
  /** What was heard of the receivers; `presence` null where none ever ran. */
  receivers(
    db: Knex,
    afterMinutes: number,
  ): Promise<{ presence: { isAbsent: boolean; unready: number; lastReadyAt: Date } | null }>;
}

/**
 * Checks for what should have happened and did not: by the service's clock for the service's duties, by this machine's
 * clock for ours. Needs a transaction; idempotent.
 */
export async function watchAbsence(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  questions: AbsenceQuestions,
): Promise<void> {
  const absences = await findAbsences(trx, alertContext, questions);
  const unsure = await uncertainAbsences(trx);
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

/** Absences that cannot be established while arrived events are still unprocessed: after downtime, or under load. */
async function uncertainAbsences(trx: Knex): Promise<ReadonlySet<string>> {
  const unsure = new Set<string>();
  // What a restored database lacks may have happened.
  if (await isCatchingUp(trx)) unsure.add("silence:retry").add("silence:renewal").add("silence:events");
  if (await isApplyingLate(trx)) unsure.add("silence:retry").add("silence:renewal");
  if (!(await isInboxScanned(trx))) unsure.add("silence:events");
  return unsure;
}

async function findAbsences(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { lastFullAnswerStart, receivers }: AbsenceQuestions,
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
  // Two hours are looked at, and their clocks may have changed by one since.
  const since = new Date(serviceNow.getTime() - weeks * weekMs - 3 * hourMs);
  const hour = hourWithoutEvents(
    await findEventHours(trx, since),
    rules.silence_events,
    serviceNow,
    zoneOf(alertContext),
  );
  if (hour !== null) found.push(missingEvents(hour, context));

  const wallNow = alertContext.clock.now();
  const { afterMinutes } = rules.silence_worker;
  const watch = await keepWatch(trx, wallNow, afterMinutes);
  const isWatched = wallNow.getTime() - watch.since.getTime() >= afterMinutes * minuteMs;
  for (const kind of ["worker", "scheduler"] as const) {
    const missing = await findStopped(trx, { prefix: kind, afterMinutes });
    if (missing !== null && isWatched) found.push(missingHeartbeats(kind, missing, context));
  }

  // A heartbeat that never existed is not missed. This one starts with the first worker, so it is expected from the
  // first sweep on.
  const watchedMs = wallNow.getTime() - watch.first.getTime();
  const isLate = isWatched && watchedMs >= schedulerGraceMinutes * minuteMs;
  if (isLate && !(await hasBeaten(trx, schedulerBeat))) {
    found.push(neverScheduled(watch.first, context));
  }

  const graceMinutes = rules.receiver_absent.afterMinutes;
  const { presence } = await receivers(trx, graceMinutes);
  // After a time in which nobody looked, such as a machine's sleep, the receivers get a sweep's time to be heard.
  if (presence?.isAbsent === true && watch.gapMs <= graceMinutes * minuteMs) {
    found.push(absentReceiver(presence, context));
  }

  const backups = await readBackups(trx);
  if (backups !== null && unsavedMs(backups) > rules.backup_overdue.afterHours * hourMs) {
    found.push(missingBackup(backups, { ...context, at: wallNow }));
  }

  const last = await lastFullAnswerStart(trx);
  const lateMs = rules.reconcile_missing.afterHours * hourMs;
  if (wallNow.getTime() - (last ?? watch.first).getTime() > lateMs) {
    found.push(missingRun({ last, watchedSince: watch.first }, { ...context, at: wallNow }));
  }
  return found;
}

/** Since when sweeps have been watching, by this machine's clock. */
export interface Watch {
  /** Since the first sweep ever. */
  first: Date;
  /**
   * Since the last gap. While no sweep ran, perhaps no worker did: missing heartbeats prove nothing about that time.
   */
  since: Date;
  /** The time between this sweep and the one before; infinite at the first. */
  gapMs: number;
}

interface Mark {
  first: string;
  since: string;
  seen: string;
}

/** Records that a sweep runs now, and returns since when sweeps have been at most `gapMinutes` apart. */
async function keepWatch(trx: Knex.Transaction, now: Date, gapMinutes: number): Promise<Watch> {
  const last = await readWatermark<Mark>(trx, "watch");
  // A clock that ran ahead leaves future times when it is set right. Without this, nothing would be missed until then.
  const gapMs = last === null ? Infinity : Math.abs(now.getTime() - Date.parse(last.seen));
  const isGap = last === null || gapMs > gapMinutes * minuteMs;
  const first = last === null || Date.parse(last.first) > now.getTime() ? now : new Date(last.first);
  const since = isGap ? now : new Date(last.since);
  await writeWatermark(trx, "watch", { first, since, seen: now });
  return { first, since, gapMs };
}

/** Since when sweeps have been at most some minutes apart, by this machine's clock; null before the first. */
export async function watchedSince(db: Knex): Promise<Date | null> {
  const mark = await readWatermark<Mark>(db, "watch");
  return mark === null ? null : new Date(mark.since);
}

/** The name of the scheduler's heartbeat, which a task of the queue sends. */
export const schedulerBeat = "scheduler";

/** Records a heartbeat. One statement. */
export async function recordHeartbeat(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").insert({ name, beat_at: db.fn.now() }).onConflict("name").merge(["beat_at"]);
}

export interface Heartbeats {
  /** For each worker that did not shut down properly: seconds since its last heartbeat. */
  workerAgesSeconds: number[];
  /** Null: the scheduler has never run a task. */
  schedulerAgeSeconds: number | null;
}

/** Reads all heartbeats. One statement. */
export async function readHeartbeats(db: Knex): Promise<Heartbeats> {
  const { rows } = await db.raw<{ rows: { name: string; age: number }[] }>(
    "select name, extract(epoch from now() - beat_at)::float8 as age from alerts.heartbeats order by beat_at desc",
  );
  return {
    workerAgesSeconds: rows.filter(({ name }) => name.startsWith("worker:")).map(({ age }) => age),
    schedulerAgeSeconds: rows.find(({ name }) => name === schedulerBeat)?.age ?? null,
  };
}

/** Removes a heartbeat at a proper shutdown, so that it is not missed. One statement. */
export async function removeHeartbeat(db: Knex, name: string): Promise<void> {
  await db("alerts.heartbeats").where({ name }).delete();
}

interface MissingRow {
  n: string;
  oldest: Date | null;
  examples: string[] | null;
}

const missingOf = (row: MissingRow | undefined): AbsentThings | null =>
  row === undefined || row.oldest === null
    ? null
    : { count: Number(row.n), oldest: row.oldest, examples: row.examples ?? [] };

/** Retries that were due before `dueBefore` (service time) and have no known attempt. One statement. */
async function findMissingRetries(db: Knex, dueBefore: Date): Promise<AbsentThings | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(o.retry_due_at) as oldest,
            (array_agg('order ' || coalesce(o.order_number, o.id) order by o.retry_due_at, o.id))[1:10] as examples
     from mirror.orders o left join mirror.subscriptions s on s.id = o.subscription_id
     where o.retry_due_at < ?
       and coalesce(s.status, '') not in ('canceled', 'completed')
       and not exists (select from mirror.transactions t
                       where t.order_id = o.id and t.type = 'sale' and t.created_at >= o.retry_due_at)
       -- The service may make another order for a retry.
       and not exists (select from mirror.orders n
                       where n.subscription_id = o.subscription_id and n.subscription_cycle = o.subscription_cycle
                         and n.created_at >= o.retry_due_at)`,
    [dueBefore],
  );
  return missingOf(rows[0]);
}

/** Active subscriptions whose billing date passed before `dueBefore` (service time) without an order. One statement. */
async function findMissingRenewals(db: Knex, dueBefore: Date): Promise<AbsentThings | null> {
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

/** How many events each hour since then brought, by the service's clock. One statement. */
const findEventHours = async (db: Knex, since: Date): Promise<EventHour[]> => {
  const rows = await db("alerts.event_hours")
    .where("hour", ">=", since)
    .select<{ hour: Date; events: string }[]>("hour", "events");
  return rows.map(({ hour, events }) => ({ hour, events: Number(events) }));
};

/** Heartbeats with this name prefix that have been missing for so long. One statement. */
async function findStopped(
  db: Knex,
  { prefix, afterMinutes }: { prefix: string; afterMinutes: number },
): Promise<AbsentThings | null> {
  const { rows } = await db.raw<{ rows: MissingRow[] }>(
    `select count(*) as n, min(beat_at) as oldest, (array_agg(name order by beat_at, name))[1:10] as examples
     from alerts.heartbeats where starts_with(name, ?) and beat_at < now() - make_interval(mins => ?)`,
    [prefix, afterMinutes],
  );
  return missingOf(rows[0]);
}

/** Whether a heartbeat of this name was ever recorded. One statement. */
const hasBeaten = async (db: Knex, name: string): Promise<boolean> =>
  (await db("alerts.heartbeats").where({ name }).first("name")) !== undefined;

/**
 * Whether events that arrived some minutes ago are still not applied. Then the mirror is behind, and what it lacks may
 * be waiting. One statement.
 */
async function isApplyingLate(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { late: boolean }[] }>(
    `select exists (
       select from (select seq from inbox.progress where state = 'received' order by seq limit 1) oldest
       join inbox.receipts r using (seq) where r.received_at < now() - interval '2 minutes') as late`,
  );
  return rows[0]?.late === true;
}

/** Whether the inbox scan has caught up. Events that it has not seen may belong to any hour. One statement. */
async function isInboxScanned(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { left: boolean }[] }>(
    `select exists (
       select from inbox.receipts
       where seq > coalesce((select (value->>'seq')::bigint from alerts.marks where name = 'inbox'), 0)) as left`,
  );
  return rows[0]?.left !== true;
}
