import type { Condition, End } from "../timeline.ts";
import type { AlertSettings } from "../settings.ts";
import { counted } from "../../platform/readable-text.ts";
import { type Wording, headlineText, missedComesBack } from "./wording.ts";

type Rules = AlertSettings["rules"];

/** Something that should have happened and did not: how often, since when, and for what. */
export interface Missing {
  count: number;
  oldest: Date;
  /** The names of a few of them. */
  examples: readonly string[];
}

interface AbsenceContext extends Wording {
  at: Date;
}

/** Retries that were due and did not happen. Pure. */
export function missingRetries(missing: Missing, context: AbsenceContext): Condition {
  return {
    ...silence("retry", "silence_retry", missing, context),
    title: headlineText({
      lead: `${counted(missing.count, "retry is", "retries are")} overdue`,
      cause: `declined renewals are not tried again since ${context.shortTime(missing.oldest)}`,
    }),
    advice:
      'Run "npx tallyhook reconcile": it finds retries whose events were lost. If the orders are still unpaid ' +
      "afterwards, the service has " +
      "stopped trying: ask its support today, and retry the largest ones there by hand.",
  };
}

/** Renewals whose date passed without an order. Pure. */
export function missingRenewals(missing: Missing, context: AbsenceContext): Condition {
  return {
    ...silence("renewal", "silence_renewal", missing, context),
    title: headlineText({
      lead: `${counted(missing.count, "renewal is", "renewals are")} overdue`,
      cause: `nothing was charged since ${context.shortTime(missing.oldest)}`,
    }),
    advice:
      'Run "npx tallyhook reconcile": the charges may only be unknown here. If the subscriptions are still due ' +
      "afterwards, the service " +
      "has not billed them: ask its support at once, this is revenue that nobody collects.",
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
 * most of the weeks compared, and in at least two. Returns the hour without events. Pure.
 */
export function hourWithoutEvents(
  hours: readonly EventHour[],
  { usuallyAtLeast, weeks }: Rules["silence_events"],
  now: Date,
): Date | null {
  const events = new Map(hours.map(({ hour, events: n }) => [hour.getTime(), n]));
  const current = Math.floor(now.getTime() / hourMs) * hourMs;
  const last = current - hourMs;
  if ((events.get(last) ?? 0) > 0 || (events.get(current) ?? 0) > 0) return null;
  let busy = 0;
  for (let week = 1; week <= weeks; week++) {
    if ((events.get(last - week * weekMs) ?? 0) >= usuallyAtLeast) busy++;
  }
  return busy >= Math.max(Math.min(2, weeks), weeks / 2) ? new Date(last) : null;
}

/** No events in an hour that is usually busy. Pure. */
export function missingEvents(
  hour: Date,
  { rules, localTime, shortTime, at }: AbsenceContext,
): Condition {
  return {
    key: "silence:events",
    rule: "silence_events",
    severity: rules.silence_events.severity,
    title: headlineText({
      lead: `No webhooks since ${shortTime(hour)}`,
      cause: "this hour usually brings them",
    }),
    advice:
      'Look in this order: "npx tallyhook endpoint list" (enabled? right address?), the receiver\'s /readyz, the ' +
      "proxy and the network in " +
      'front of it, the service\'s status page. When they arrive again, "npx tallyhook reconcile" brings what ' +
      "was missed.",
    facts: [{ label: "Silent since", value: localTime(hour) }],
    kept: { since: hour.toISOString() },
    at,
  };
}

/** Workers, or the scheduler, whose heartbeats are missing. Pure. */
export function stopped(
  kind: "worker" | "scheduler",
  missing: Missing,
  context: AbsenceContext,
): Condition {
  const isWorker = kind === "worker";
  return {
    ...silence(kind, "silence_worker", missing, context),
    title: isWorker
      ? headlineText({
          lead: `${counted(missing.count, "worker")} silent since ${context.shortTime(missing.oldest)}`,
          next: "Stopped, or killed",
        })
      : headlineText({
          lead: `No scheduled task started since ${context.shortTime(missing.oldest)}`,
          next: "The nightly run will not start",
        }),
    advice: isWorker
      ? 'Read its log, look at the memory of its machine, and start it again: "npx tallyhook worker". The events ' +
        "that it held go to the others."
      : schedulerAdvice,
  };
}

/** A scheduler that has never sent a heartbeat, though workers have run since then. Pure. */
export function neverScheduled(since: Date, context: AbsenceContext): Condition {
  const missing = { count: 1, oldest: since, examples: ["scheduler"] };
  return {
    ...silence("scheduler", "silence_worker", missing, context),
    title: headlineText({
      lead: `No scheduled task has ever started, though running since ${context.shortTime(since)}`,
      next: "The nightly run will not start",
    }),
    advice: schedulerAdvice,
  };
}

const schedulerAdvice =
  'Workers run, but the queue starts no schedules: "npx tallyhook doctor" shows the queue; look at Redis and ' +
  'restart a worker. If the nightly run was due meanwhile, "npx tallyhook reconcile".';

/** No reconciliation for too long, or none at all since watching began. Pure. */
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
          ? `Never reconciled, though running since ${shortTime(watchedSince)}`
          : `Not reconciled since ${shortTime(last)}`,
      next: "Reports say INCOMPLETE",
    }),
    advice:
      'Meanwhile nothing proves that mirror and service are equal. See that a worker runs ("npx tallyhook ' +
      'doctor"), then run ' +
      '"npx tallyhook reconcile".',
    facts: [{ label: "Last run", value: last === null ? "none" : localTime(last) }],
    kept: { last_run: last?.toISOString() ?? null },
    at,
  };
}

function silence(
  kind: "retry" | "renewal" | "worker" | "scheduler",
  rule: "silence_retry" | "silence_renewal" | "silence_worker",
  { count, oldest, examples }: Missing,
  { rules, localTime, at }: Pick<AbsenceContext, "rules" | "localTime" | "at">,
): Omit<Condition, "title" | "advice"> {
  return {
    key: `silence:${kind}`,
    rule,
    severity: rules[rule].severity,
    facts: [
      { label: "Since", value: localTime(oldest) },
      { label: "Such as", value: examples.join(", ") },
    ],
    kept: { count, since: oldest.toISOString(), examples: examples.join(", ") },
    measures: { missing: count },
    at,
  };
}

/** How absences that end by themselves are resolved, by their keys. */
export const absenceEnds = {
  "silence:retry": {
    title: "No retry is overdue any more",
    advice:
      "They came, or their orders were paid or given up. If somebody charged one by hand meanwhile, see that nobody paid " +
      'twice: "npx tallyhook report exceptions".',
  },
  "silence:renewal": {
    title: "No renewal is overdue any more",
    advice:
      "They were charged, or their subscriptions ended. If somebody charged one by hand meanwhile, see that nobody paid " +
      'twice: "npx tallyhook report exceptions".',
  },
  "silence:events": {
    title: "Webhooks arrive again",
    advice: `Run it now: ${missedComesBack}.`,
  },
  "silence:worker": {
    title: "No worker is missing any more",
    advice:
      '"npx tallyhook doctor" shows whether events still wait. If nobody restarted it on purpose, its log says why it ' +
      "stopped.",
  },
  "silence:scheduler": {
    title: "Scheduled tasks start again",
    advice: 'If the nightly run was due meanwhile, it was not made: "npx tallyhook reconcile".',
  },
  "silence:reconcile": {
    title: "Mirror and service were compared again",
    advice: '"npx tallyhook findings list" shows what the run found; nothing else is left to do.',
  },
} as const satisfies Readonly<Record<string, End>>;
