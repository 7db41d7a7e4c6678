import { ConfigurationError } from "../../platform/errors.ts";
import { dayIn } from "../../platform/local-time.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { allReports } from "../catalogue/all.ts";
import type { Days } from "../period.ts";
import type { Report } from "../report.ts";

type Kind = "day" | "month";

/** What is mailed about each kind of period. */
export type MailPlan = Readonly<Record<Kind, readonly Report[]>>;

/** One mail: the reports of one period. */
export interface MailedPeriod extends Days {
  /** `day:2026-11-20`, `month:2026-10`: the same whoever works it out. */
  key: string;
}

/** Reads REPORTS_MAIL against the reports there are. Pure. Throws `ConfigurationError` that says what is possible. */
export function mailPlanOf(wished: readonly { name: string; word: Kind | null }[]): MailPlan {
  const named = wished.map(({ name, word }) => ({
    report: reportNamed(name),
    kind: word ?? "day",
  }));
  const of = (kind: Kind) => named.filter((each) => each.kind === kind).map(({ report }) => report);
  return { day: of("day"), month: of("month") };
}

function reportNamed(name: string): Report {
  const names = allReports.map((report) => report.name);
  const found = allReports.find((report) => report.name === name);
  if (found !== undefined) return found;
  const near = nearestName(name, names);
  const hint = near === null ? `There are ${names.join(", ")}.` : `Did you mean ${near}?`;
  throw new ConfigurationError(`REPORTS_MAIL: there is no report ${name}. ${hint}`);
}

/** The day and the month that were over at a moment, as far as something is mailed about them. Pure. */
export function periodsBefore(now: Date, timeZone: string, plan: MailPlan): MailedPeriod[] {
  const today = dayIn(timeZone, now);
  const yesterday = daysBefore(today, 1);
  const endOfMonth = daysBefore(`${today.slice(0, 7)}-01`, 1);
  const month = endOfMonth.slice(0, 7);
  return [
    ...(plan.day.length > 0 ? [{ key: `day:${yesterday}`, from: yesterday, to: yesterday }] : []),
    ...(plan.month.length > 0
      ? [{ key: `month:${month}`, from: `${month}-01`, to: endOfMonth }]
      : []),
  ];
}

/** What is mailed about a period. Pure. */
export const reportsOf = (plan: MailPlan, key: string): readonly Report[] =>
  key.startsWith("month:") ? plan.month : plan.day;

/** Days of the calendar, which no time zone shortens. */
const daysBefore = (day: string, n: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) - n * 86_400_000).toISOString().slice(0, 10);
