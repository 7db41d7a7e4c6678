import type { Knex } from "knex";
import { lastWholeRun } from "../../reconcile/queries/last-whole-run.ts";
import { clear, raise } from "../conditions.ts";
import type { Condition } from "../conditions.ts";
import { localTimes } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import {
  findEventHours,
  findMissingRenewals,
  findMissingRetries,
  findStopped,
} from "../facts/missing.ts";
import {
  missingEvents,
  missingRenewals,
  missingRetries,
  missingRun,
  silentHour,
  stopped,
} from "../rules/silence.ts";

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

/** What each kind of silence says when it ends. */
const ends: Readonly<Record<string, string>> = {
  "silence:retry": "Every retry that was due has come",
  "silence:renewal": "Every renewal that was due has been charged",
  "silence:events": "Events arrive again",
  "silence:worker": "No worker is missing any more",
  "silence:scheduler": "The scheduler runs again",
  "silence:reconcile": "Reconciliation runs again",
};

/**
 * Looks for what should have happened and did not: by the service's clock where the service should have done it, by this
 * machine's where we should have. Needs a transaction; idempotent.
 */
export async function watchSilence(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const silences = await findSilences(trx, desk);
  await raise(trx, desk, silences, "sweep");
  const at = desk.serviceClock.now();
  const silent = new Set(silences.map(({ key }) => key));
  const over = Object.entries(ends).filter(([key]) => !silent.has(key));
  await clear(
    trx,
    desk,
    over.map(([key, title]) => ({ key, title, at })),
    "sweep",
  );
}

async function findSilences(trx: Knex, desk: AlertDesk): Promise<Condition[]> {
  const { rules } = desk.settings;
  const serviceNow = desk.serviceClock.now();
  const context = { rules, localTime: localTimes(desk), at: serviceNow };
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

  const { afterMinutes } = rules.silence_worker;
  for (const kind of ["worker", "scheduler"] as const) {
    const missing = await findStopped(trx, { prefix: kind, afterMinutes });
    if (missing !== null) found.push(stopped(kind, missing, context));
  }

  const last = await lastWholeRun(trx);
  const wallNow = desk.clock.now();
  const lateMs = rules.reconcile_missing.afterHours * hourMs;
  if (last !== null && wallNow.getTime() - last.getTime() > lateMs) {
    found.push(missingRun(last, { ...context, at: wallNow }));
  }
  return found;
}
