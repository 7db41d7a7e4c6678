import type { Knex } from "knex";
import { inTransaction, limitTransaction, tryLock } from "../../platform/postgres/transactions.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { AlertSettings, RuleName } from "./settings.ts";
import { readWatermark, writeWatermark } from "./store.ts";
import { stormFamilies } from "./storms/storms.ts";

const dayMs = 86_400_000;

/** How long the lists that named an alert are kept after its end. */
const itemsDays = 30;
/** How long a message that was never sent is kept: `alerts resend` can still send it. */
const unsentDays = 365;
/** Alerts that auditors and card networks may ask for after years. */
const lastingRules: readonly RuleName[] = ["chargeback", "identity_broken"];
const lastingDays = 3_653;
const eventHoursDays = 100;

/**
 * Keys that name one object, run or value each. The newest alert of every other key stays, so that its numbering
 * continues.
 */
const endlessKeys = [
  ...new Set(Object.values(stormFamilies).flatMap(({ keys }) => keys)),
  "drift:",
  "incomplete:",
  "future:",
];
/** Keys of alerts that may never end: an order that is never paid, a value that is acknowledged. */
const openEndedKeys = [
  "decline:",
  "dunning:",
  "chargeback:",
  "new-value:",
  "new-values-end:",
  "event-id:",
  "card-number:",
];

const batchSize = 1_000;

/** Held by the one process that removes alerts. An arbitrary fixed number. */
const retentionLock = 7_255_011_938;

/** A process that is stopped in a step leaves the turn to the others after it. */
const stepLimits = { statementMs: 600_000, lockMs: null, transactionMs: 600_000 };

/** Rows removed, by table. */
export type RemovedRows = Record<string, number>;

export interface AlertRetention {
  /** The database's clock. */
  now: Date;
  /** The service's clock. */
  serviceNow: Date;
  settings: Pick<AlertSettings, "keep" | "rules">;
  stopping?: AbortSignal;
}

/**
 * Removes messages, entries of lists, and alerts with their histories when their time is over (docs/operations.md has
 * the times). A message of an open alert loses only its text: its channel still gets the end. Works in batches, each a
 * transaction of its own. Idempotent; does nothing while another worker does it.
 */
export async function pruneAlerts(db: Knex, retention: AlertRetention): Promise<RemovedRows> {
  const { now, settings, stopping } = retention;
  const { messagesDays, alertsDays } = settings.keep;
  const before = (days: number): Date => new Date(now.getTime() - days * dayMs);
  const rules = Object.keys(settings.rules).filter((rule) => !isLasting(rule));
  const ordinary = { rules, before: before(alertsDays) };
  const lasting = {
    rules: lastingRules,
    before: before(Math.max(lastingDays, alertsDays)),
  };
  const steps: readonly ((trx: Knex.Transaction) => Promise<Step>)[] = [
    (trx) => pruneEventHours(trx, retention.serviceNow),
    (trx) => pruneMessages(trx, "messages", before(messagesDays), ["sent", "dropped"]),
    (trx) =>
      pruneMessages(trx, "unsent-messages", before(Math.max(unsentDays, messagesDays)), [
        "sent",
        "dropped",
        "failed",
        "pending",
      ]),
    (trx) => pruneItems(trx, before(itemsDays)),
    (trx) => pruneSilences(trx, before(alertsDays)),
    ...[ordinary, lasting].flatMap((which) => [
      (trx: Knex.Transaction) => removeEnded(trx, which),
      (trx: Knex.Transaction) => removeOpenEnded(trx, which),
    ]),
  ];
  const removed: RemovedRows = {};
  for (const step of steps) {
    let more = true;
    while (more && stopping?.aborted !== true) {
      more = await inTransaction(db, async (trx) => {
        await limitTransaction(trx, stepLimits);
        if (!(await tryLock(trx, retentionLock))) return false;
        const done = await step(trx);
        for (const [table, n] of Object.entries(done.removed)) {
          removed[table] = (removed[table] ?? 0) + n;
        }
        return done.more;
      });
    }
  }
  return removed;
}

const isLasting = (rule: string): boolean => lastingRules.some((name) => name === rule);

interface Step {
  removed: RemovedRows;
  /** There may be more to remove. */
  more: boolean;
}

async function pruneEventHours(trx: Knex.Transaction, serviceNow: Date): Promise<Step> {
  const oldest = new Date(serviceNow.getTime() - eventHoursDays * dayMs);
  const eventHours = await trx("alerts.event_hours").where("hour", "<", oldest).delete();
  return { removed: { event_hours: eventHours }, more: false };
}

/** A person begins each, so they are few. */
async function pruneSilences(trx: Knex.Transaction, before: Date): Promise<Step> {
  const silences = await trx("alerts.silences").where("ends_at", "<", before).delete();
  return { removed: { silences }, more: false };
}

/** The rows read, in the order of their numbers. */
interface Batch {
  /** The number of old rows among the next ones. */
  old: number;
  /** The number of the last old one. */
  last: string | null;
  removed: RemovedRows;
}

const removedText = "The text of this message was removed, since it is old";

/**
 * Continues through the outbox from the last call's position, up to the first message that is not old. Removes messages
 * in these states; of an open alert's messages, only the texts.
 */
async function pruneMessages(
  trx: Knex.Transaction,
  name: string,
  before: Date,
  states: readonly string[],
): Promise<Step> {
  return goOn(trx, name, async (after) => {
    const { rows } = await trx.raw<{ rows: [Batch] }>(
      `with next as materialized (
         select id, created_at, state, alert_id from alerts.outbox where id > :after order by id limit :batchSize
       ), old as materialized (
         select id, state, alert_id from next n
         where (n.id < (select min(id) from next where created_at >= :before)) is not false
       ), due as materialized (
         select o.id, o.alert_id is null or a.state = 'resolved' as is_over
         from old o left join alerts.alerts a on a.id = o.alert_id where o.state = any(:states::text[])
       ), gone as (
         delete from alerts.outbox o using due d where o.id = d.id and d.is_over returning 1
       ), emptied as (
         update alerts.outbox o
         set message = (message - 'items') || jsonb_build_object('title', :removedText::text, 'advice', '',
               'facts', '[]'::jsonb, 'links', '[]'::jsonb),
             state = case when o.state = 'sent' then o.state else 'dropped' end
         from due d where o.id = d.id and not d.is_over
       )
       select (select count(*) from old)::int as old, (select max(id) from old) as last,
              jsonb_build_object('outbox', (select count(*) from gone)) as removed`,
      { after, batchSize, before, states: sqlArray(states), removedText },
    );
    return rows[0];
  });
}

/** Continues through the ends of alerts, and removes the list entries of alerts that ended long enough ago. */
async function pruneItems(trx: Knex.Transaction, before: Date): Promise<Step> {
  return goOn(trx, "list-items", async (after) => {
    const { rows } = await trx.raw<{ rows: [Batch] }>(
      `with next as materialized (
         select id, alert_id, change, recorded_at from alerts.history where id > :after order by id limit :batchSize
       ), old as materialized (
         select id, alert_id, change from next n
         where (n.id < (select min(id) from next where recorded_at >= :before)) is not false
       ), ended as materialized (
         select distinct a.id from old o join alerts.alerts a on a.id = o.alert_id
         where o.change = 'resolved' and a.state = 'resolved'
       ), digest as (
         delete from alerts.digest_items i using ended e where i.alert_id = e.id returning 1
       ), listed as (
         -- What a storm has listed is counted at its end.
         delete from alerts.storm_items i using ended e, alerts.alerts storm
         where i.alert_id = e.id and storm.id = i.storm_id and storm.state = 'resolved' returning 1
       ), of_storm as (
         delete from alerts.storm_items i using ended e, alerts.alerts a
         where i.storm_id = e.id and a.id = i.alert_id and a.state = 'resolved' returning 1
       )
       select (select count(*) from old)::int as old, (select max(id) from old) as last,
              jsonb_build_object(
                'digest_items', (select count(*) from digest),
                'storm_items', (select count(*) from listed) + (select count(*) from of_storm)) as removed`,
      { after, batchSize, before },
    );
    return rows[0];
  });
}

/** Takes the batch after the last read row, and records the new position. */
async function goOn(trx: Knex.Transaction, name: string, take: (after: string) => Promise<Batch>): Promise<Step> {
  const mark = `retention: ${name}`;
  const { after } = (await readWatermark<{ after: string }>(trx, mark)) ?? { after: "0" };
  const { old, last, removed } = await take(after);
  if (last !== null) await writeWatermark(trx, mark, { after: last });
  return { removed, more: old === batchSize };
}

interface Old {
  rules: readonly string[];
  before: Date;
}

/** Removes alerts that ended, and were recorded, before that time. */
async function removeEnded(trx: Knex.Transaction, { rules, before }: Old): Promise<Step> {
  return removeAlerts(
    trx,
    `a.state = 'resolved' and a.rule = any(:rules::text[]) and a.resolved_at < :before and a.created_at < :before
     and (exists (select from unnest(:endlessKeys::text[]) as p where starts_with(a.key, p))
          or exists (select from alerts.alerts n where n.key = a.key and n.occurrence > a.occurrence))`,
    { rules: sqlArray(rules), before, endlessKeys: sqlArray(endlessKeys) },
  );
}

/** Removes alerts that need no end and did not change since that time. */
async function removeOpenEnded(trx: Knex.Transaction, { rules, before }: Old): Promise<Step> {
  return removeAlerts(
    trx,
    `a.state <> 'resolved' and a.rule = any(:rules::text[]) and a.created_at < :before and a.updated_at < :before
     and coalesce(a.acknowledged_at < :before, true)
     and exists (select from unnest(:openEndedKeys::text[]) as p where starts_with(a.key, p))`,
    { rules: sqlArray(rules), before, openEndedKeys: sqlArray(openEndedKeys) },
  );
}

async function removeAlerts(
  trx: Knex.Transaction,
  condition: string,
  bindings: Record<string, unknown>,
): Promise<Step> {
  const { rows } = await trx.raw<{ rows: RemovedRows[] }>(
    `with due as materialized (
       select a.id from alerts.alerts a where ${condition} limit :batchSize for update skip locked
     ), history as (
       delete from alerts.history h using due d where h.alert_id = d.id returning 1
     ), outbox as (
       delete from alerts.outbox o using due d where o.alert_id = d.id returning 1
     ), digest as (
       delete from alerts.digest_items i using due d where i.alert_id = d.id returning 1
     ), storm as (
       delete from alerts.storm_items i using due d where i.alert_id = d.id or i.storm_id = d.id returning 1
     ), gone as (
       delete from alerts.alerts a using due d where a.id = d.id returning 1
     )
     select (select count(*) from gone)::int as alerts, (select count(*) from history)::int as history,
            (select count(*) from outbox)::int as outbox, (select count(*) from digest)::int as digest_items,
            (select count(*) from storm)::int as storm_items`,
    { ...bindings, batchSize },
  );
  const removed = rows[0] ?? {};
  return { removed, more: removed["alerts"] === batchSize };
}
