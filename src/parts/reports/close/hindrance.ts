import { counted, someOf } from "../../../platform/readable-text.ts";
import { ActRefused } from "../../../app/people/act.ts";
import type { Verdict } from "../base/report-facts.ts";

/** The obstacles to closing a month, named by the failed check, in the order of the checks. */
export type Hindrance =
  /** The month has not ended. */
  | {
      check: "over";
      month: string;
      endsAt: string;
      timeZone: string;
      closableFrom: string;
      now: string;
    }
  /** It is already closed, or it is not the next one. */
  | { check: "order"; month: string; closedThrough: string; next: string }
  /** Its days would have other bounds than those of the last closed month. */
  | { check: "zone"; closedThrough: string; was: string; is: string }
  /** The last close was made less than a minute ago. */
  | { check: "apart"; month: string; closedThrough: string; seconds: number }
  /** `parts` were not read; `isHole`: but for objects that could not be read. */
  | { check: "read"; parts: readonly UnreadPart[]; isHole: boolean }
  /** Changes to older sales were last read at that time; null: never. */
  | { check: "changes"; since: string | null }
  /** These findings block it, the oldest first; `open`: how many. */
  | { check: "findings"; open: string; findings: readonly OpenFinding[] }
  /** The sums of these days are not the service's. */
  | {
      check: "days";
      month: string;
      report: string;
      days: readonly string[];
      fromUtc: string;
      toUtc: string;
    }
  /** It is proved now, but was not a minute ago. */
  | { check: "minute"; month: string; asOf: string; seconds: number }
  /** It is not proved, for none of the reasons above. */
  | { check: "verdict"; verdict: Verdict };

export type CloseCheck = Hindrance["check"];

/** Parts of a resource without a fresh slice that proves them. */
export interface UnreadPart {
  resource: string;
  /** Days of the report's zone; `from_day` is null from the first record on. */
  from_day: string | null;
  to_day: string;
  from_utc: string | null;
  to_utc: string;
  /** It was read, except for an object that could not be read: no nightly run lists it again before its turn. */
  isHole: boolean;
}

export interface OpenFinding {
  finding: string;
  /** `critical missing there order o1`. */
  about: string;
  /** `YYYY-MM-DD`, in the report's zone. */
  since: string;
}

/** The refusal to close a month, with its reasons. */
export interface CloseRefusal {
  month: string;
  /** Reports by verdict other than PASS. Not empty: a reason closes the month although it is not proved. */
  verdicts: readonly { verdict: Verdict; reports: readonly string[]; isAll: boolean }[];
  hindrances: readonly Hindrance[];
}

/** A month cannot be closed, so nothing was frozen. */
export class CloseRefused extends ActRefused {
  readonly why: CloseRefusal;

  constructor(why: CloseRefusal) {
    super("hindered", refusalLines(why).join("\n"));
    this.why = why;
  }
}

/** The refusal in lines. A command or page passes `lineOf` to add its own advice. */
export function refusalLines(
  { month, verdicts, hindrances }: CloseRefusal,
  lineOf: (hindrance: Hindrance) => string = sentenceOf,
): string[] {
  const head = verdicts.length === 0 ? [] : [`${month} is not proved, so nothing was frozen.`];
  const ofReports = verdicts.map(({ verdict, reports, isAll }) =>
    isAll ? `${verdict}: all ${reports.length} reports.` : `${verdict}: ${reports.join(", ")}.`,
  );
  return [...head, ...ofReports, ...hindrances.map(lineOf)];
}

const shownAtMost = 5;

/** The fault and the remedy, as far as commands and pages share the words. */
export function sentenceOf(hindrance: Hindrance): string {
  switch (hindrance.check) {
    case "over": {
      const { month, endsAt, timeZone, closableFrom, now } = hindrance;
      return (
        `${month} is over at ${endsAt}, the end of its last day in ${timeZone}. It can be closed from ${closableFrom} ` +
        `by the database's clock, where it is ${now}.`
      );
    }
    case "order": {
      const { month, closedThrough, next } = hindrance;
      return month <= closedThrough
        ? `${month} cannot be closed: the books are closed through ${closedThrough}. What is learned later is booked in ${next}.`
        : `Close ${next} first: the last closed month is ${closedThrough}.`;
    }
    case "zone": {
      const { closedThrough, was, is } = hindrance;
      return (
        `${closedThrough} was closed in time zone ${was}, and TALLYHOOK_TIME_ZONE is ${is}: hours between the two months ` +
        `would be lost or counted twice. Set TALLYHOOK_TIME_ZONE back to ${was}.`
      );
    }
    case "apart": {
      const { month, closedThrough, seconds } = hindrance;
      return (
        `${closedThrough} was closed less than a minute ago, and ${month} is closed as of a minute ago. ` +
        `Wait ${counted(seconds, "second")}, then try again.`
      );
    }
    case "minute": {
      const { month, asOf, seconds } = hindrance;
      return (
        `${month} is not proved yet: a close is as of a minute ago (${asOf}), and what was read or acknowledged since ` +
        `does not count yet. Wait ${counted(seconds, "second")}, then try again.`
      );
    }
    case "read":
      return hindrance.isHole
        ? `Not proved, since an object could not be read: ${daysText(hindrance.parts)}.`
        : `Not read: ${daysText(hindrance.parts)}.`;
    case "changes": {
      const { since } = hindrance;
      const read = since === null ? "never been read" : `not been read since ${since}`;
      return `Chargebacks, voids and settlements of older sales have ${read}.`;
    }
    case "findings": {
      const shown = hindrance.findings.map(({ finding, about, since }) => `${finding} (${about}, since ${since})`);
      return `Open findings (${hindrance.open}): ${someOf(shown, shownAtMost)}. Heal each, or acknowledge it.`;
    }
    case "days":
      return `${hindrance.report} differs on ${someOf(hindrance.days, shownAtMost)}.`;
    case "verdict":
      return `The month is not proved: its verdict is ${hindrance.verdict}.`;
  }
}

/** `orders, transactions of 2026-11-03; customers up to 2026-11-30`. */
function daysText(parts: readonly UnreadPart[]): string {
  const byDays = new Map<string, string[]>();
  for (const { resource, from_day: from, to_day: to } of parts) {
    const days = from === null ? `up to ${to}` : from === to ? `of ${from}` : `from ${from} to ${to}`;
    byDays.set(days, [...new Set([...(byDays.get(days) ?? []), `${resource}s`])]);
  }
  return [...byDays].map(([days, resources]) => `${resources.join(", ")} ${days}`).join("; ");
}
