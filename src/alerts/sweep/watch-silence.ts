import type { Knex } from "knex";
import { lastWholeRun } from "../../reconcile/queries/last-whole-run.ts";
import { clear, raise } from "../conditions.ts";
import { wordingOf } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import { schedulerBeat } from "../heartbeats.ts";
import type { Condition } from "../rules/condition.ts";
import {
  findEventHours,
  findMissingRenewals,
  findMissingRetries,
  findStopped,
  hasBeaten,
  isApplyingLate,
  isInboxLookedThrough,
} from "../facts/missing.ts";
import {
  missingEvents,
  missingRenewals,
  missingRetries,
  missingRun,
  neverScheduled,
  silenceEnds,
  silentHour,
  stopped,
} from "../rules/silence.ts";
import { keepWatch } from "./keep-watch.ts";

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;
const minuteMs = 60_000;

/** A first start may take its time to reach the queue. The scheduler beats every minute. */
const schedulerGraceMinutes = 10;

/**
 * Looks for what should have happened and did not: by the service's clock where the service should have done it, by this
 * machine's where we should have. Needs a transaction; idempotent.
 */
export async function watchSilence(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const silences = await findSilences(trx, desk);
  const unsure = await notKnownYet(trx);
  await raise(
    trx,
    desk,
    silences.filter(({ key }) => !unsure.has(key)),
    "sweep",
  );
  const at = desk.serviceClock.now();
  const silent = new Set(silences.map(({ key }) => key));
  const over = Object.entries(silenceEnds).filter(([key]) => !silent.has(key));
  await clear(
    trx,
    desk,
    over.map(([key, end]) => ({ key, end, at })),
    "sweep",
  );
}

/** What cannot be said to be missing while what arrived has not been looked at: after a time away, or in a rush. */
async function notKnownYet(trx: Knex): Promise<ReadonlySet<string>> {
  const unsure = new Set<string>();
  if (await isApplyingLate(trx)) unsure.add("silence:retry").add("silence:renewal");
  if (!(await isInboxLookedThrough(trx))) unsure.add("silence:events");
  return unsure;
}

async function findSilences(trx: Knex.Transaction, desk: AlertDesk): Promise<Condition[]> {
  const { rules } = desk.settings;
  const serviceNow = desk.serviceClock.now();
  const context = { ...wordingOf(desk), at: serviceNow };
  const hoursAgo = (hours: number) => new Date(serviceNow.getTime() - hours * hourMs);
  const found: Condition[] = [];

  const retries = await findMissingRetries(trx, hoursAgo(rules.silence_retry.afterHours));
  if (retries !== null) found.push(missingRetries(retries, context));
  const renewals = await findMissingRenewals(trx, hoursAgo(rules.silence_renewal.afterHours));
  if (renewals !== null) found.push(missingRenewals(renewals, context));

  const { weeks } = rules.silence_events;
  const since = new Date(serviceNow.getTime() - weeks * weekMs - 2 * hourMs);
  const hour = silentHour(await findEventHours(trx, since), rules.silence_events, serviceNow);
  if (hour !== null) found.push(missingEvents(hour, context));

  const wallNow = desk.clock.now();
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
