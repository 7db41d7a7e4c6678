import type { Condition } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";

type Rules = AlertSettings["rules"];

/** What should have happened and did not: how often, since when, and of what. */
export interface Missing {
  count: number;
  oldest: Date;
  /** Names of a few of them. */
  examples: readonly string[];
}

interface SilenceContext {
  rules: Rules;
  localTime(at: Date): string;
  at: Date;
}

/** Retries that were due and never came. Pure. */
export function missingRetries(missing: Missing, context: SilenceContext): Condition {
  return {
    ...silence("retry", "silence_retry", missing, context),
    title: `Dunning stands still: ${missing.count} ${missing.count === 1 ? "retry was" : "retries were"} due and did not come`,
    advice:
      "Either the retries came and their events were lost (npx tallyhook reconcile shows them), or the service has stopped to " +
      "retry: ask it, and retry by hand what cannot wait.",
  };
}

/** Renewals whose date passed without an order. Pure. */
export function missingRenewals(missing: Missing, context: SilenceContext): Condition {
  return {
    ...silence("renewal", "silence_renewal", missing, context),
    title: `${missing.count} ${missing.count === 1 ? "renewal is" : "renewals are"} overdue without a charge`,
    advice:
      "Run npx tallyhook reconcile first: the charges may only be unknown here. If they are not, the service has not billed: " +
      "this is revenue, ask it at once.",
  };
}

/** Hours, by the service's clock, with the number of events that they brought; an hour that is not there had none. */
export interface EventHour {
  hour: Date;
  events: number;
}

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

/**
 * Whether the last full hour and the one that runs brought nothing, though the same hour of the week usually brings
 * events: in most of the weeks that are looked at, and in at least two. Gives back the silent hour. Pure.
 */
export function silentHour(
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

/** No events in an hour that usually is a busy one. Pure. */
export function missingEvents(hour: Date, { rules, localTime, at }: SilenceContext): Condition {
  return {
    key: "silence:events",
    rule: "silence_events",
    severity: rules.silence_events.severity,
    title: `No events since ${localTime(hour)}, an hour that usually brings them`,
    advice:
      'Look in this order: "npx tallyhook endpoint list" (is it enabled, is its address right), the receiver\'s /readyz, the ' +
      'network in front of it, the service\'s status. Afterwards "npx tallyhook reconcile" brings what was missed.',
    facts: [{ label: "Silent since", value: localTime(hour) }],
    kept: { since: hour.toISOString() },
    at,
  };
}

/** Workers, or the scheduler, of which nothing was heard. Pure. */
export function stopped(
  kind: "worker" | "scheduler",
  missing: Missing,
  context: SilenceContext,
): Condition {
  const isWorker = kind === "worker";
  return {
    ...silence(kind, "silence_worker", missing, context),
    title: isWorker
      ? `${missing.count} ${missing.count === 1 ? "worker has" : "workers have"} stopped without a word`
      : "The scheduler stands still: nothing that runs on a schedule is started",
    advice: isWorker
      ? "Look at its log and at the memory of its machine, and start it again. What it had at work was given back."
      : "Workers run, but the queue starts no schedules: look at Redis (or at BullMQ's tables) and restart a worker. The nightly run " +
        "is affected: npx tallyhook reconcile.",
  };
}

/** No reconciliation for too long, or none at all since somebody watches. Pure. */
export function missingRun(
  { last, watchedSince }: { last: Date | null; watchedSince: Date },
  { rules, localTime, at }: SilenceContext,
): Condition {
  const since =
    last === null ? `ever, since ${localTime(watchedSince)}` : `since ${localTime(last)}`;
  return {
    key: "silence:reconcile",
    rule: "reconcile_missing",
    severity: rules.reconcile_missing.severity,
    title: `No reconciliation ${since}`,
    advice:
      'Nothing proves the mirror meanwhile. See that a worker runs, then "npx tallyhook reconcile".',
    facts: [{ label: "Last run", value: last === null ? "none" : localTime(last) }],
    kept: { last_run: last?.toISOString() ?? null },
    at,
  };
}

function silence(
  kind: "retry" | "renewal" | "worker" | "scheduler",
  rule: "silence_retry" | "silence_renewal" | "silence_worker",
  { count, oldest, examples }: Missing,
  { rules, localTime, at }: SilenceContext,
): Omit<Condition, "title" | "advice"> {
  return {
    key: `silence:${kind}`,
    rule,
    severity: rules[rule].severity,
    facts: [
      { label: "Since", value: localTime(oldest) },
      { label: "How many", value: String(count) },
      { label: "Such as", value: examples.join(", ") },
    ],
    kept: { count, since: oldest.toISOString(), examples: examples.join(", ") },
    measures: { missing: count },
    at,
  };
}
