import type { Knex } from "knex";
import { ConfigurationError, UsageError } from "../../../platform/errors.ts";
import { dayIn } from "../../../platform/local-time.ts";
import type { Days } from "../base/period.ts";
import type { Report } from "../base/report.ts";
import { findReport } from "../catalogue/all.ts";

type Kind = "day" | "month";

/** The reports that are mailed for each kind of period. */
export type MailPlan = Readonly<Record<Kind, readonly Report[]>>;

/** One mail: the reports of one period. */
interface MailedPeriod extends Days {
  /** `day:2026-11-20`, `month:2026-10`: every worker computes the same key. */
  key: string;
}

/** Checks REPORTS_MAIL against the existing reports. Throws `ConfigurationError` that suggests valid names. */
export function mailPlanOf(wished: readonly { name: string; word: Kind | null }[]): MailPlan {
  const named = wished.map(({ name, word }) => ({
    report: reportNamed(name),
    kind: word ?? "day",
  }));
  const of = (kind: Kind) => named.filter((each) => each.kind === kind).map(({ report }) => report);
  return { day: of("day"), month: of("month") };
}

/** Throws `ConfigurationError` that names the setting, rather than the `UsageError` of a command's argument. */
function reportNamed(name: string): Report {
  try {
    return findReport(name);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new ConfigurationError(`REPORTS_MAIL: ${error.message}`, { cause: error });
  }
}

/** The last day and month that ended before `now`, each only if reports are mailed for it. */
export function periodsBefore(now: Date, timeZone: string, plan: MailPlan): MailedPeriod[] {
  const today = dayIn(timeZone, now);
  const yesterday = daysBefore(today, 1);
  const endOfMonth = daysBefore(`${today.slice(0, 7)}-01`, 1);
  const month = endOfMonth.slice(0, 7);
  return [
    ...(plan.day.length > 0 ? [{ key: `day:${yesterday}`, from: yesterday, to: yesterday }] : []),
    ...(plan.month.length > 0 ? [{ key: `month:${month}`, from: `${month}-01`, to: endOfMonth }] : []),
  ];
}

/** The reports that are mailed for a period. */
export const reportsOf = (plan: MailPlan, key: string): readonly Report[] =>
  key.startsWith("month:") ? plan.month : plan.day;

/** Counts calendar days, whose length does not depend on a time zone. */
const daysBefore = (day: string, n: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) - n * 86_400_000).toISOString().slice(0, 10);

/** A mail that one worker has taken to send. */
export interface Mailing extends MailedPeriod {
  asOf: Date;
  messageId: string;
  /** Including this one. */
  attempts: number;
}

/** Longer than rendering and sending take. If a worker dies, another takes the mailing after this time. */
const leaseMinutes = 15;
/** The pause between attempts starts at one minute and doubles up to this. */
const longestPauseMinutes = 60;
/** How long a mail server may be down before a mail is abandoned. */
const givenUpAfterHours = 48;

/** Orders the mail of a period; false if it was ordered before. Idempotent. */
export async function orderMailing(
  db: Knex,
  { key, from, to }: MailedPeriod,
  { asOf, messageId }: Pick<Mailing, "asOf" | "messageId">,
): Promise<boolean> {
  const ordered = await db("reports.mailings")
    .insert({ key, from_day: from, to_day: to, as_of: asOf, message_id: messageId })
    .onConflict("key")
    .ignore()
    .returning("key");
  return ordered.length > 0;
}

/** Whether any mail was ever ordered. */
export async function hasEverMailed(db: Knex): Promise<boolean> {
  return (await db("reports.mailings").first("key")) !== undefined;
}

/** Takes a due mailing and leases it, so that no other worker takes it; null if none is due. */
export async function takeDueMailing(db: Knex): Promise<Mailing | null> {
  const { rows } = await db.raw<{ rows: Mailing[] }>(
    `update reports.mailings set attempts = attempts + 1, next_attempt_at = now() + make_interval(mins => ?)
     where key = (
       select key from reports.mailings where state = 'due' and next_attempt_at <= now()
       order by next_attempt_at, key limit 1 for update skip locked)
     returning key, from_day::text as "from", to_day::text as "to", as_of as "asOf", message_id as "messageId",
               attempts`,
    [leaseMinutes],
  );
  return rows[0] ?? null;
}

export async function recordSent(db: Knex, key: string): Promise<void> {
  await db("reports.mailings").where({ key }).update({ state: "sent", settled_at: db.fn.now(), error: null });
}

/**
 * Records a failed attempt. Returns the time of the next one; null if the mail is given up, because it would be refused
 * again or has been tried for two days.
 */
export async function recordFailedAttempt(
  db: Knex,
  { key, attempts }: Pick<Mailing, "key" | "attempts">,
  { code, isRetryable }: { code: string; isRetryable: boolean },
): Promise<Date | null> {
  const pauseMinutes = Math.min(2 ** (attempts - 1), longestPauseMinutes);
  const { rows } = await db.raw<{ rows: { state: string; next_attempt_at: Date }[] }>(
    `update reports.mailings m
     set error = :code, next_attempt_at = now() + make_interval(mins => :pauseMinutes),
         state = given_up.state, settled_at = case when given_up.state = 'failed' then now() end
     from (select case when :isRetryable and now() < ordered_at + make_interval(hours => :givenUpAfterHours)
                  then 'due' else 'failed' end as state
           from reports.mailings where key = :key) given_up
     where m.key = :key returning m.state, m.next_attempt_at`,
    { key, code, isRetryable, pauseMinutes, givenUpAfterHours },
  );
  const [row] = rows;
  return row === undefined || row.state === "failed" ? null : row.next_attempt_at;
}

const byOther = "sent before the restore, as far as is known";

/**
 * Takes mails for sent that the lost system has sent since the backup: those that were due then, and those of these
 * periods. Needs a transaction; idempotent.
 */
export async function presumeMailed(
  trx: Knex.Transaction,
  periods: readonly MailedPeriod[],
  ranUntil: Date,
): Promise<void> {
  const sent = { state: "sent", settled_at: trx.fn.now(), error: byOther };
  await trx("reports.mailings").where({ state: "due" }).where("ordered_at", "<=", ranUntil).update(sent);
  for (const { key, from, to } of periods) {
    await trx("reports.mailings")
      .insert({ key, from_day: from, to_day: to, as_of: ranUntil, message_id: "", ...sent })
      .onConflict("key")
      .ignore();
  }
}
