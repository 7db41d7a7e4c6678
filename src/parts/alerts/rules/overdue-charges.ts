import type { Knex } from "knex";
import { isCatchingUp } from "../../../core/mirror/restores.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { type AbsentThings, absentFacts } from "./absent-things.ts";
import { headlineText } from "./wording.ts";

const hourMs = 3_600_000;
/** Retries that were due and did not happen. */
export const overdueRetries = watch({
  rule: "silence_retry",
  about: 'A retry is overdue by "afterHours" hours.',
  severity: "error",
  settings: { afterHours: count(1, 240, 24) },
  clock: "service",
  read: (db, { settings, at }) => unlessBehind(db, findMissingRetries(db, hoursBefore(at, settings.afterHours))),
  begins: ({ missing }, context) =>
    missing && {
      ...absentFacts(missing, context),
      key: "silence:retry",
      title: headlineText({
        lead: `${counted(missing.count, "retry of a declined renewal is", "retries of declined renewals are")} overdue`,
        cause: `the oldest since ${context.shortTime(missing.oldest)}`,
      }),
      advice:
        `Run "${tallyhook("reconcile")}": it finds retries whose events were lost. If orders are still unpaid ` +
        "after it, the service has stopped retrying. Ask its support today, and retry the largest orders there by " +
        "hand.",
    },
  end: {
    title: "Retries are no longer overdue",
    advice:
      "The retries came, or their orders were paid or given up. If you charged an order by hand in the meantime, check " +
      `that no customer paid twice: "${tallyhook("report exceptions")}".`,
  },
  samples: ({ at }) => ({ "retries overdue": sample(at, 3, "order TEST0005") }),
});

/** Renewals whose date passed without an order. */
export const overdueRenewals = watch({
  rule: "silence_renewal",
  about: 'A renewal is overdue by "afterHours" hours.',
  severity: "error",
  settings: { afterHours: count(1, 240, 24) },
  clock: "service",
  read: (db, { settings, at }) => unlessBehind(db, findMissingRenewals(db, hoursBefore(at, settings.afterHours))),
  begins: ({ missing }, context) =>
    missing && {
      ...absentFacts(missing, context),
      key: "silence:renewal",
      title: headlineText({
        lead: `${counted(missing.count, "renewal is", "renewals are")} overdue`,
        cause: `the oldest since ${context.shortTime(missing.oldest)}`,
      }),
      advice:
        `Run "${tallyhook("reconcile")}": perhaps the charges are only missing here. If subscriptions are still ` +
        "due after it, the service has not billed them. Ask its support immediately: this revenue is not collected.",
    },
  end: {
    title: "Renewals are no longer overdue",
    advice:
      "They were charged, or their subscriptions ended. If you charged one by hand in the meantime, check that no customer " +
      `paid twice: "${tallyhook("report exceptions")}".`,
  },
  samples: ({ at }) => ({ "renewals overdue": sample(at, 12, "subscription sample-subscription") }),
});

const sample = (at: Date, number: number, example: string) => ({
  missing: { count: number, oldest: hoursBefore(at, 26), examples: [example] },
});

/** After a restore, a downtime or under load, waiting events may show the missing ones: null. */
async function unlessBehind(db: Knex, find: Promise<AbsentThings | null>) {
  const missing = await find;
  return missing !== null && ((await isCatchingUp(db)) || (await isApplyingLate(db))) ? null : { missing };
}

const hoursBefore = (at: Date, hours: number): Date => new Date(at.getTime() - hours * hourMs);

interface AbsentRow {
  n: string;
  oldest: Date | null;
  examples: string[] | null;
}

/** Null where nothing is absent. */
const absentThings = (row: AbsentRow | undefined): AbsentThings | null =>
  row === undefined || row.oldest === null
    ? null
    : { count: Number(row.n), oldest: row.oldest, examples: row.examples ?? [] };

/** Retries that were due before `dueBefore` (service time) and have no known attempt. One statement. */
async function findMissingRetries(db: Knex, dueBefore: Date): Promise<AbsentThings | null> {
  const { rows } = await db.raw<{ rows: AbsentRow[] }>(
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
  return absentThings(rows[0]);
}

/** Active subscriptions whose billing date passed before `dueBefore` (service time) without an order. One statement. */
async function findMissingRenewals(db: Knex, dueBefore: Date): Promise<AbsentThings | null> {
  const { rows } = await db.raw<{ rows: AbsentRow[] }>(
    `select count(*) as n, min(s.next_billing_date) as oldest,
            (array_agg('subscription ' || s.id order by s.next_billing_date, s.id))[1:10] as examples
     from mirror.subscriptions s
     where s.status = 'active' and s.next_billing_date < ? and s.deleted_at is null
       and not exists (select from mirror.orders o
                       where o.subscription_id = s.id and o.created_at >= s.next_billing_date - interval '1 day')`,
    [dueBefore],
  );
  return absentThings(rows[0]);
}

/**
 * Whether events that arrived some minutes ago are still not applied. Then the mirror is behind, and missing objects
 * may be among them. One statement.
 */
async function isApplyingLate(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { late: boolean }[] }>(
    `select exists (
       select from (select seq from inbox.progress where state = 'received' order by seq limit 1) oldest
       join inbox.receipts r using (seq) where r.received_at < now() - interval '2 minutes') as late`,
  );
  return rows[0]?.late === true;
}
