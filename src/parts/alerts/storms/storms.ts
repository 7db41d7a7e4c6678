import { tallyhook } from "../../../platform/command-line.ts";
import { isNotPresumedTold } from "../presume-told.ts";
import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { type AlertContext, zoneOf } from "../alert-context.ts";
import { type Amount, sumTexts } from "../rules/wording.ts";
import type { AlertSettings, RuleName } from "../settings.ts";
import { readWatermark, writeWatermark } from "../store.ts";
import type { Family } from "../condition.ts";
import type { Condition } from "../timeline.ts";

/** The number of alerts of a family that are sent individually in a window. */
export function usualLimit(
  { rules: { decline_storm: storm } }: Pick<AlertSettings, "rules">,
  family: Family,
  usual: number | null,
): number {
  const { limit } = stormFamilies[family];
  const byRate = Math.max(storm.atLeast, Math.ceil(storm.factor * (usual ?? 0)));
  if (family === "late-declines") return Math.max(limit ?? 0, byRate);
  return limit ?? byRate;
}

export interface StormTotals {
  /** Counts alerts, not their transitions. */
  alerts: number;
  /** In minor units; currencies are never added. */
  sums: readonly Amount[];
  /** Counted by failure code, where the alerts have one. */
  codes: Readonly<Record<string, number>>;
}

export interface StormCount extends StormTotals {
  /** The period in minutes; it may be longer than the window that detects storms. */
  minutes: number;
  limit: number;
  at: Date;
}

/** Alerts with their money in one currency. */
interface CountedAmount {
  alerts: number;
  currency: string | null;
  amountMinor: bigint | null;
  /** Number of alerts without a known amount. */
  unknown: number;
}

/** The number of a storm's alerts that were reported in one way. */
export interface StormItemCount extends CountedAmount {
  toldHow: "alone" | "at_once" | "at_end" | "over" | "in_digest";
}

/** A row of `countedAmountSql`. */
export interface CountedAmountRow {
  n: string;
  currency: string | null;
  sum: string | null;
  unknown: string;
}

/** Counts rows that have an amount; the statement groups them by currency. */
export const countedAmountSql =
  "currency, count(*) as n, sum(amount_minor) as sum, count(*) - count(amount_minor) as unknown";

export const countedAmount = ({ currency, n, sum, unknown }: CountedAmountRow): CountedAmount => ({
  alerts: Number(n),
  currency,
  amountMinor: sum === null ? null : BigInt(sum),
  unknown: Number(unknown),
});

/** Whether every alert of the family has an amount, so that a missing one is unknown. */
export const isOfMoney = (family: Family): boolean =>
  stormFamilies[family].stages === "attempt:" || family === "chargebacks";

/** The incident that represents many alerts and grows with them. */
export function stormCondition(
  { rules }: Pick<AlertSettings, "rules">,
  family: Family,
  { alerts, sums, codes, minutes, limit, at }: StormCount,
): Condition {
  const { rule, holds, title, advice } = stormFamilies[family];
  const isMoney = isOfMoney(family);
  return {
    key: `storm:${family}`,
    rule,
    // Many dead events together have a cause on our side.
    severity: family === "dead" ? "critical" : rules[rule].severity,
    title: title(alerts, minutes),
    advice:
      `${advice} ${isMoney ? moneyInStorm : "All"} are listed when the storm is over, or after an hour. ` +
      `Until then: ${listCommand(holds)}.`,
    facts: [
      ...sumTexts(isMoney ? sums : []).map((value) => ({ label: "Total", value })),
      { label: `In ${minutes} minutes`, value: String(alerts) },
      { label: "Sent one by one up to", value: String(limit) },
      { label: "Rules held back", value: holds.join(", ") },
      ...Object.entries(codes)
        .slice(0, 8)
        .map(([label, n]) => ({ label, value: String(n) })),
    ],
    storedFacts: { count: alerts, limit },
    measures: { alerts },
    at,
  };
}

const moneyInStorm =
  "Fraud, chargebacks, high amounts and lost renewals are still sent immediately. The daily list stays as it is. " +
  "All others";

/** The command that lists the alerts of these rules. It takes one rule; the others are named. */
export function listCommand([first, ...others]: readonly RuleName[]): string {
  const also = others.length === 0 ? "" : ` (also ${others.join(", ")})`;
  return `"${tallyhook(`alerts list --rule ${first}`)}"${also}`;
}

/** The common features of a family's alerts, and the description of their storm. */
export interface StormFamily {
  /** The rule whose severity and channels the incident uses. */
  rule: RuleName;
  /** The rules whose alerts are held back. */
  holds: readonly RuleName[];
  /** The prefixes of its alerts' keys. */
  keys: readonly string[];
  /** The prefix of the transitions that count. */
  stages: string;
  /** The number of alerts that are sent individually in a window; null: decided by the usual rate. */
  limit: number | null;
  title: (count: number, withinMinutes: number) => string;
  advice: string;
  /** The message at the end of the storm. */
  end: string;
}

export const stormFamilies: Readonly<Record<Family, StormFamily>> = {
  declines: {
    rule: "decline_storm",
    holds: ["decline", "dunning_first", "dunning_renewal", "dunning_final"],
    keys: ["decline:", "dunning:"],
    stages: "attempt:",
    limit: null,
    title: (count, minutes) => `${count} declines in ${minutes} min, far above the usual rate`,
    advice:
      `Look at the codes. Nearly all alike: the gateway or our setup is broken. Check "${tallyhook("doctor")}" and ` +
      "the service's status page. Fraud codes: stolen cards are tested. Protect the checkout.",
    end: "Declines are back to their usual rate",
  },
  "late-declines": {
    rule: "decline",
    holds: ["decline", "dunning_first", "dunning_renewal", "dunning_final"],
    keys: ["decline:", "dunning:"],
    stages: "attempt:",
    limit: 50,
    title: (count, minutes) => `${count} declines arrived late, within ${minutes} min`,
    advice:
      "This is not an attack: the charges were made at the usual rate, and their events came together. The " +
      `receiver or the service was down. "${tallyhook("reconcile")}" finds what is still missing.`,
    end: "Late declines have stopped",
  },
  dead: {
    rule: "event_dead",
    holds: ["event_dead"],
    keys: ["dead:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} events could not be applied in ${minutes} min`,
    advice:
      `They usually have one cause, such as a new format: "${tallyhook("events list --state dead")}" shows it. Fix ` +
      `it, then run "${tallyhook("events replay --dead")}".`,
    end: "Dead-event storm over",
  },
  chargebacks: {
    rule: "chargeback",
    holds: ["chargeback"],
    keys: ["chargeback:"],
    stages: "opened",
    limit: 20,
    title: (count, minutes) => `${count} chargebacks in ${minutes} min`,
    advice:
      "Possible causes: stolen cards, a batch from one bank, the initial import. Each chargeback has its own " +
      `deadline: start with "${tallyhook("report chargebacks")}".`,
    end: "Chargeback storm over",
  },
  "new-values": {
    rule: "event_unknown",
    holds: ["event_unknown", "event_duplicate_id"],
    keys: ["new-value:", "event-id:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} unknown values in ${minutes} min`,
    advice:
      "The service has changed its interface, or a field now holds free text. All values were stored as they came. " +
      "Look up in the service's changelog what they mean.",
    end: "Unknown-value storm over",
  },
  "card-numbers": {
    rule: "card_number",
    holds: ["card_number"],
    keys: ["card-number:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} fields with card numbers in ${minutes} min`,
    advice:
      "All were masked here. Something writes whole forms into fields, or makes up metadata keys one by one. Stop it " +
      "at its source.",
    end: "Card-number storm over",
  },
  undescribed: {
    rule: "alert_undescribed",
    holds: ["alert_undescribed"],
    keys: ["undescribed:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} alerts could not be composed in ${minutes} min`,
    advice:
      "They usually have one cause: a new shape of data, or a fault of this version. All data was applied. The " +
      "worker's log has the error.",
    end: "Storm of alerts that could not be composed over",
  },
};

interface Window {
  family: Family;
  withinMinutes: number;
}

const ofFamily = `
  starts_with(h.stage, :stages) and exists (select from unnest(:keys::text[]) p where starts_with(a.key, p))`;

const familyBindings = (family: Family): { stages: string; keys: string[] } => ({
  stages: stormFamilies[family].stages,
  keys: [...stormFamilies[family].keys],
});

/**
 * The number of a family's alerts recorded in the window; counts no further than `limit`. In a family whose storm only
 * reduces the number of messages, alerts for a digest do not count. One statement.
 */
export async function countArrivals(db: Knex, { family, withinMinutes }: Window, limit: number): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select count(*) as n from (
       select 1 from alerts.history h join alerts.alerts a on a.id = h.alert_id
       where h.recorded_at > now() - make_interval(mins => :withinMinutes) and ${ofFamily}
         and ${isNotPresumedTold("h.detail")}
         and (:countsDigests or not exists (
           select from alerts.digest_items d where d.alert_id = h.alert_id and d.stage = h.stage))
       limit :limit) few`,
    {
      ...familyBindings(family),
      withinMinutes,
      limit,
      countsDigests: family !== "late-declines",
    },
  );
  return Number(rows[0]?.n);
}

export interface Peak {
  count: number;
  /** The end of the window with that many declines. */
  at: Date;
}

/**
 * The fullest window around these times, by the times of the charges: declines that are delivered together but happened
 * hours apart are no attack. Null where there are none. One statement.
 */
export async function fullestWindow(
  db: Knex,
  { family, withinMinutes }: Window,
  times: readonly Date[],
): Promise<Peak | null> {
  const widthMs = withinMinutes * 60_000;
  const windows = [...new Set(times.map((at) => Math.floor(at.getTime() / widthMs)))];
  const { rows } = await db.raw<{ rows: { n: string; at: Date }[] }>(
    `select w.n, w.at from unnest(?::timestamptz[]) as start
     cross join lateral (
       select h.at, count(*) over (order by h.at range between make_interval(mins => ?) preceding and current row) as n
       from alerts.history h
       where h.at >= start - make_interval(mins => ?) and h.at < start + make_interval(mins => ?)
         and starts_with(h.stage, ?)) w
     order by w.n desc, w.at limit 1`,
    [
      sqlArray(windows.map((n) => new Date(n * widthMs).toISOString())),
      withinMinutes,
      withinMinutes,
      2 * withinMinutes,
      stormFamilies[family].stages,
    ],
  );
  const [row] = rows;
  return row === undefined ? null : { count: Number(row.n), at: row.at };
}

/**
 * The totals of a storm: all alerts of the family recorded in the last so many minutes, or charged in the window that
 * ends then. One statement.
 */
export async function stormTotals(
  db: Knex,
  family: Family,
  span: { learnedWithinMinutes: number } | { chargedUntil: Date; withinMinutes: number },
): Promise<StormTotals> {
  const isLearned = "learnedWithinMinutes" in span;
  const { rows } = await db.raw<{ rows: (CountedAmountRow & { code: string | null })[] }>(
    `select code, ${countedAmountSql} from (
       select distinct a.id, a.currency, a.amount_minor, a.facts->>'failure_code' as code
       from alerts.history h join alerts.alerts a on a.id = h.alert_id
       where ${isLearned ? "h.recorded_at > now() - make_interval(secs => :seconds)" : "h.at >= :from and h.at <= :to"} and ${ofFamily}) each
     group by currency, code order by n desc, code, currency`,
    {
      ...familyBindings(family),
      ...(isLearned
        ? { seconds: span.learnedWithinMinutes * 60 }
        : {
            from: new Date(span.chargedUntil.getTime() - span.withinMinutes * 60_000),
            to: span.chargedUntil,
          }),
    },
  );
  const codes: Record<string, number> = {};
  for (const { code, n } of rows) {
    if (code !== null) codes[code] = (codes[code] ?? 0) + Number(n);
  }
  return {
    alerts: rows.reduce((all, { n }) => all + Number(n), 0),
    sums: rows.map(countedAmount),
    codes,
  };
}

/**
 * Counts the alerts of a storm that no message shows, because they can wait for a digest, by currency. One
 * statement.
 */
export async function digestTotals(
  db: Knex,
  family: Family,
  { stormId, learnedWithinMinutes }: { stormId: number; learnedWithinMinutes: number },
): Promise<StormItemCount[]> {
  const { rows } = await db.raw<{ rows: CountedAmountRow[] }>(
    `select ${countedAmountSql} from (
       select distinct a.id, a.currency, a.amount_minor
       from alerts.history h join alerts.alerts a on a.id = h.alert_id
       where h.recorded_at > now() - make_interval(mins => :minutes) and ${ofFamily}
         and exists (select from alerts.digest_items d where d.alert_id = h.alert_id and d.stage = h.stage)
         and not exists (select from alerts.storm_items i where i.storm_id = :stormId and i.alert_id = h.alert_id)) each
     group by currency`,
    { ...familyBindings(family), minutes: learnedWithinMinutes, stormId },
  );
  return rows.map((row) => ({ toldHow: "in_digest", ...countedAmount(row) }));
}

const hourMs = 3_600_000;
const markName = "usual-declines";

interface Mark {
  at: string;
  per_window: number | null;
}

/**
 * The usual number of declines in a window around this time, by the times of the charges; null until a day of them is
 * known. It is the largest of three numbers: the mean of this hour (with the hour before and after) over the days of
 * the baseline, and the fullest window around this time of day one week ago and one month ago. The last two count
 * because renewals cluster on weekdays and days of the month, so they show the last comparable billing day.
 */
export async function usualDeclines(db: Knex, alertContext: AlertContext, at: Date): Promise<number | null> {
  const mark = await readWatermark<Mark>(db, markName);
  const isNear = mark !== null && Math.abs(Date.parse(mark.at) - at.getTime()) <= hourMs;
  return isNear ? mark.per_window : countUsual(db, alertContext, at);
}

/**
 * Computes the usual declines for this hour, once an hour. Assessing declines only reads the result. Needs a
 * transaction.
 */
export async function learnUsualDeclines(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const fresh = await trx("alerts.marks")
    .where("name", markName)
    .whereRaw("updated_at > now() - interval '1 hour'")
    .first("name");
  if (fresh !== undefined) return;
  const at = alertContext.serviceClock.now();
  const mark: Mark = { at: at.toISOString(), per_window: await countUsual(trx, alertContext, at) };
  await writeWatermark(trx, markName, mark);
}

/** One statement. */
async function countUsual(db: Knex, alertContext: AlertContext, at: Date): Promise<number | null> {
  const { withinMinutes, baselineDays } = alertContext.settings.rules.decline_storm;
  const { rows } = await db.raw<{ rows: { usual: number | null }[] }>(
    `with asked as (
       select :at::timestamptz as at, make_interval(mins => :mins) as width, interval '90 minutes' as around
     ), attempts as not materialized (
       -- The initial import raises alerts on a part of the past only, so its declines say nothing of the usual rate.
       select h.at from alerts.history h where starts_with(h.stage, 'attempt:') and h.found_by <> 'import'
     ), known as (
       select least(:days::float8, extract(epoch from asked.at - (select at from attempts order by at limit 1)) / 86400) as days
       from asked
     ), mean as (
       select count(*) / max(known.days) / (180.0 / :mins) as n
       from asked, known, generate_series(1, :days) as day
       join attempts a on a.at >= (select at - around from asked) - day * interval '1 day'
                      and a.at < (select at + around from asked) - day * interval '1 day'
       where known.days >= 1
     ), comparable as (
       select asked.at - interval '7 days' as at, asked.width, asked.around from asked
       union all
       select (asked.at at time zone :zone - interval '1 month') at time zone :zone, asked.width, asked.around from asked
     ), fullest as (
       select max(w.n) as n from comparable c cross join lateral (
         select count(*) over (order by a.at range between c.width preceding and current row) as n
         from attempts a where a.at >= c.at - c.around and a.at < c.at + c.around) w
     )
     select case when known.days >= 1 then greatest(mean.n, fullest.n, 0) end::float8 as usual from known, mean, fullest`,
    { at, mins: withinMinutes, days: baselineDays, zone: zoneOf(alertContext) },
  );
  return rows[0]?.usual ?? null;
}
