import type { Condition, End } from "../timeline.ts";
import type { AlertSettings } from "../settings.ts";
import { instantsOf, localTimeIn } from "../../../platform/local-time.ts";
import { counted } from "../../../platform/readable-text.ts";
import { type Wording, headlineText, reconcileAfterMissedWebhooks } from "./wording.ts";

type Rules = AlertSettings["rules"];

/** Something that should have happened and did not: how often, since when, and for what. */
export interface AbsentThings {
  count: number;
  oldest: Date;
  /** The names of a few of them. */
  examples: readonly string[];
}

interface AbsenceContext extends Wording {
  at: Date;
}

/** Retries that were due and did not happen. */
export function missingRetries(missing: AbsentThings, context: AbsenceContext): Condition {
  return {
    ...absenceCondition("retry", "silence_retry", missing, context),
    title: headlineText({
      lead: `${counted(missing.count, "retry of a declined renewal is", "retries of declined renewals are")} overdue`,
      cause: `the oldest since ${context.shortTime(missing.oldest)}`,
    }),
    advice:
      'Run "node src/bin/tallyhook.js reconcile": it finds retries whose events were lost. If orders are still ' +
      "unpaid after it, " +
      "the service has stopped retrying. Ask its support today, and retry the largest orders there by hand.",
  };
}

/** Renewals whose date passed without an order. */
export function missingRenewals(missing: AbsentThings, context: AbsenceContext): Condition {
  return {
    ...absenceCondition("renewal", "silence_renewal", missing, context),
    title: headlineText({
      lead: `${counted(missing.count, "renewal is", "renewals are")} overdue`,
      cause: `the oldest since ${context.shortTime(missing.oldest)}`,
    }),
    advice:
      'Run "node src/bin/tallyhook.js reconcile": perhaps the charges are only missing here. If subscriptions are ' +
      "still due after " +
      "it, the service has not billed them. Ask its support at once: nobody collects this revenue.",
  };
}

/** Hours by the service's clock, with their numbers of events. An hour that is not listed had none. */
export interface EventHour {
  hour: Date;
  events: number;
}

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

/**
 * Whether the last full hour and the current one brought no events, though the same hour of the week usually does: in
 * most of the weeks compared, and in at least two. It has to do so by UTC and by the clock of `timeZone`, since a job
 * follows one of them, and where clocks have changed since, they mean two hours. Returns the hour without events.
 */
export function hourWithoutEvents(
  hours: readonly EventHour[],
  { usuallyAtLeast, weeks }: Rules["silence_events"],
  now: Date,
  timeZone: string,
): Date | null {
  const events = new Map(hours.map(({ hour, events: n }) => [hour.getTime(), n]));
  const current = Math.floor(now.getTime() / hourMs) * hourMs;
  const last = current - hourMs;
  if ((events.get(last) ?? 0) > 0 || (events.get(current) ?? 0) > 0) return null;
  const local = localTimeIn(timeZone)(new Date(last));
  const isBusy = (at: number) => (events.get(Math.floor(at / hourMs) * hourMs) ?? 0) >= usuallyAtLeast;
  let busy = 0;
  for (let week = 1; week <= weeks; week++) {
    const [sameLocal] = instantsOf({ ...local, day: local.day - 7 * week }, timeZone);
    const then = last - week * weekMs;
    if (isBusy(then) && isBusy(sameLocal?.getTime() ?? then)) busy++;
  }
  return busy >= Math.max(Math.min(2, weeks), weeks / 2) ? new Date(last) : null;
}

/** No events in an hour that is usually busy. */
export function missingEvents(hour: Date, { rules, localTime, shortTime, at }: AbsenceContext): Condition {
  return {
    key: "silence:events",
    rule: "silence_events",
    severity: rules.silence_events.severity,
    title: headlineText({
      lead: `No webhooks since ${shortTime(hour)}`,
      cause: "this hour usually brings them",
    }),
    advice:
      'Check in this order: "node src/bin/tallyhook.js endpoint list" (is it enabled, is the address right?), the receiver\'s ' +
      "/readyz, the proxy and the network in front of it, the service's status page. When webhooks arrive again, run " +
      '"node src/bin/tallyhook.js reconcile". It corrects the mirror where webhooks were missed.',
    facts: [{ label: "No webhooks since", value: localTime(hour) }],
    storedFacts: { since: hour.toISOString() },
    at,
  };
}

/** Workers, or the scheduler, whose heartbeats are missing. */
export function missingHeartbeats(
  kind: "worker" | "scheduler",
  missing: AbsentThings,
  context: AbsenceContext,
): Condition {
  const isWorker = kind === "worker";
  return {
    ...absenceCondition(kind, "silence_worker", missing, context),
    title: isWorker
      ? headlineText({
          lead: `${counted(missing.count, "worker")} without a heartbeat since ${context.shortTime(missing.oldest)}`,
          next: "Stopped or killed",
        })
      : headlineText({
          lead: `No scheduled task started since ${context.shortTime(missing.oldest)}`,
          next: "The nightly run will not start",
        }),
    advice: isWorker
      ? "Read its log, and check the memory of its machine. Then start it again: " +
        '"node src/bin/tallyhook.js worker". The other workers apply the events that it held.'
      : schedulerAdvice,
  };
}

/** No receiver takes webhooks: none runs, or those that run cannot store events. */
export function absentReceiver(
  { lastReadyAt, unready }: { lastReadyAt: Date; unready: number },
  { rules, localTime, shortTime, at }: AbsenceContext,
): Condition {
  return {
    key: "silence:receiver",
    rule: "receiver_absent",
    severity: rules.receiver_absent.severity,
    title: headlineText({
      lead: `No receiver takes webhooks since ${shortTime(lastReadyAt)}`,
      cause:
        unready === 0
          ? "none runs"
          : `${counted(unready, "runs and cannot store events", "run and cannot store events")}`,
      next: "The service gets no 2xx",
    }),
    advice:
      (unready === 0
        ? 'Read the log of the last one, then start it again: "node src/bin/tallyhook.js receiver". '
        : "GET /readyz of the receiver names what it lacks, and its log says why. ") +
      'The service sends again what was refused, for a limited time. Then run "node src/bin/tallyhook.js reconcile": ' +
      "it reads what is missing.",
    facts: [
      { label: "Since", value: localTime(lastReadyAt) },
      { label: "Run and cannot store", value: String(unready) },
    ],
    storedFacts: { since: lastReadyAt.toISOString(), unready },
    at,
  };
}

/** No verified backup for too long, where backups are made. */
export function missingBackup(
  { takenAt, triedSince }: { takenAt: Date | null; triedSince: Date },
  { rules, localTime, shortTime, at }: AbsenceContext,
): Condition {
  return {
    key: "silence:backup",
    rule: "backup_overdue",
    severity: rules.backup_overdue.severity,
    title: headlineText({
      lead:
        takenAt === null
          ? `No backup has succeeded since the first was begun ${shortTime(triedSince)}`
          : `No verified backup since ${shortTime(takenAt)}`,
      next: "What only this database knows would be lost with it",
    }),
    advice:
      'Run "node src/bin/tallyhook.js backup DIRECTORY": it says what keeps it from being made. Then look why the timer ' +
      "did not (docs/backup.md).",
    facts: [{ label: "Last verified backup", value: takenAt === null ? "none" : localTime(takenAt) }],
    storedFacts: { last_backup: takenAt?.toISOString() ?? null },
    at,
  };
}

/** A scheduler that has never sent a heartbeat, though workers have run since then. */
export function neverScheduled(since: Date, context: AbsenceContext): Condition {
  const missing = { count: 1, oldest: since, examples: ["scheduler"] };
  return {
    ...absenceCondition("scheduler", "silence_worker", missing, context),
    title: headlineText({
      lead: `No scheduled task has ever started; workers run since ${context.shortTime(since)}`,
      next: "The nightly run will not start",
    }),
    advice: schedulerAdvice,
  };
}

const schedulerAdvice =
  'Workers run, but none of them starts the scheduled tasks. Their logs say why: look for "a round failed" and "a ' +
  'scheduled task failed". Then restart a worker: within a minute "node src/bin/tallyhook.js doctor" shows that the ' +
  'scheduler ran a task. If the nightly run was due meanwhile, run "node src/bin/tallyhook.js reconcile".';

/** No reconciliation for too long, or none at all since watching began. */
export function missingRun(
  { last, watchedSince }: { last: Date | null; watchedSince: Date },
  { rules, localTime, shortTime, at }: AbsenceContext,
): Condition {
  return {
    key: "silence:reconcile",
    rule: "reconcile_missing",
    severity: rules.reconcile_missing.severity,
    title: headlineText({
      lead:
        last === null
          ? `Never reconciled; workers run since ${shortTime(watchedSince)}`
          : `Not reconciled since ${shortTime(last)}`,
      next: "Reports say INCOMPLETE",
    }),
    advice:
      "Until a run is complete, nothing proves that mirror and service are equal. Check that a worker runs " +
      '("node src/bin/tallyhook.js doctor"), then run "node src/bin/tallyhook.js reconcile".',
    facts: [{ label: "Last complete run", value: last === null ? "none" : localTime(last) }],
    storedFacts: { last_run: last?.toISOString() ?? null },
    at,
  };
}

function absenceCondition(
  kind: "retry" | "renewal" | "worker" | "scheduler",
  rule: "silence_retry" | "silence_renewal" | "silence_worker",
  { count, oldest, examples }: AbsentThings,
  { rules, localTime, at }: Pick<AbsenceContext, "rules" | "localTime" | "at">,
): Omit<Condition, "title" | "advice"> {
  return {
    key: `silence:${kind}`,
    rule,
    severity: rules[rule].severity,
    facts: [
      { label: "Since", value: localTime(oldest) },
      { label: "For example", value: examples.join(", ") },
    ],
    storedFacts: { count, since: oldest.toISOString(), examples: examples.join(", ") },
    measures: { missing: count },
    at,
  };
}

/** How absences that end by themselves are resolved, by their keys. */
export const absenceEnds = {
  "silence:retry": {
    title: "Retries are no longer overdue",
    advice:
      "The retries came, or their orders were paid or given up. If you charged an order by hand meanwhile, check that " +
      'nobody paid twice: "node src/bin/tallyhook.js report exceptions".',
  },
  "silence:renewal": {
    title: "Renewals are no longer overdue",
    advice:
      "They were charged, or their subscriptions ended. If you charged one by hand meanwhile, check that nobody paid " +
      'twice: "node src/bin/tallyhook.js report exceptions".',
  },
  "silence:events": {
    title: "Webhooks arrive again",
    advice: `${reconcileAfterMissedWebhooks}.`,
  },
  "silence:receiver": {
    title: "A receiver takes webhooks again",
    advice: `${reconcileAfterMissedWebhooks}.`,
  },
  "silence:worker": {
    title: "The missing worker is back, or is no longer expected",
    advice:
      "A worker is no longer expected once it has been missing for an hour. Check that enough workers run: " +
      '"node src/bin/tallyhook.js doctor". If nobody stopped the worker on purpose, its log says why it stopped.',
  },
  "silence:scheduler": {
    title: "Scheduled tasks start again",
    advice: 'If the nightly run was due meanwhile, it did not start: run "node src/bin/tallyhook.js reconcile".',
  },
  "silence:backup": {
    title: "A backup is verified again",
    advice: "Nothing is left to do.",
  },
  "silence:reconcile": {
    title: "Reconciliation is complete again",
    advice: '"node src/bin/tallyhook.js findings list" shows what is open. Nothing else is left to do.',
  },
} as const satisfies Readonly<Record<string, End>>;
