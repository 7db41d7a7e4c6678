import type { Knex } from "knex";
import { sqlArray, storableJson } from "../../platform/postgres/values.ts";
import type { ChangedBy, FoundBy } from "./alert-context.ts";
import { type AlertMessage, type AlertSeverity, alertSeverities } from "./message.ts";
import { holding } from "./silences.ts";
import {
  type PlannedChange,
  type StoredAlert,
  type Timeline,
  lastActiveTransition,
  lastTransition,
} from "./timeline.ts";

export interface NewestAlert extends StoredAlert {
  key: string;
  occurrence: number;
  openedAt: Date;
  facts: Readonly<Record<string, unknown>>;
}

/** The newest alert of each of these keys, locked until the transaction ends. One statement. */
export async function newestAlerts(trx: Knex, keys: readonly string[]): Promise<Map<string, NewestAlert>> {
  if (keys.length === 0) return new Map();
  const found = await lockAlerts(
    trx,
    `a.key = any(?::text[])
       and not exists (select from alerts.alerts b where b.key = a.key and b.occurrence > a.occurrence)`,
    [sqlArray(keys)],
  );
  return new Map(found.map((alert) => [alert.key, alert]));
}

/** An occurrence of a key: one alert. */
export type Occurrence = Pick<NewestAlert, "key" | "occurrence">;

/** Its name in a map. */
export const nameOf = ({ key, occurrence }: Occurrence): string => `${occurrence} ${key}`;

/** The stored alerts among these, by `nameOf`, locked until the transaction ends. One statement. */
export async function storedAlerts(trx: Knex, occurrences: readonly Occurrence[]): Promise<Map<string, NewestAlert>> {
  if (occurrences.length === 0) return new Map();
  const found = await lockAlerts(trx, "(a.key, a.occurrence) in (select * from unnest(?::text[], ?::integer[]))", [
    sqlArray(occurrences.map(({ key }) => key)),
    sqlArray(occurrences.map(({ occurrence }) => occurrence)),
  ]);
  return new Map(found.map((alert) => [nameOf(alert), alert]));
}

async function lockAlerts(trx: Knex, condition: string, bindings: readonly string[]): Promise<NewestAlert[]> {
  const { rows } = await trx.raw<{
    rows: {
      id: string;
      key: string;
      occurrence: number;
      state: StoredAlert["state"];
      opened_at: Date;
      facts: Record<string, unknown>;
      stages: string[];
    }[];
  }>(
    `select a.id, a.key, a.occurrence, a.state, a.opened_at, a.facts,
            array(select h.stage from alerts.history h where h.alert_id = a.id) as stages
     from alerts.alerts a where ${condition} order by a.key, a.occurrence for update of a`,
    bindings,
  );
  return rows.map(({ id, opened_at: openedAt, stages, ...row }) => {
    return { ...row, id: Number(id), openedAt, stages: new Set(stages) };
  });
}

/** Brings the rows of alerts up to their timelines. Returns their ids by `nameOf`. One statement; idempotent. */
export async function writeAlerts(
  trx: Knex,
  changes: readonly Pick<PlannedChange, "timeline" | "occurrence">[],
  foundBy: FoundBy,
): Promise<Map<string, number>> {
  if (changes.length === 0) return new Map();
  const { rows } = await trx.raw<{ rows: (Occurrence & { id: string })[] }>(
    `insert into alerts.alerts as a
       (key, occurrence, rule, severity, state, stage, order_id, subscription_id, transaction_id, customer_id,
        amount_minor, currency, opened_at, updated_at, resolved_at, facts, found_by)
     select g.key, g.occurrence, g.rule, g.severity, g.state, g.stage, g.order_id, g.subscription_id, g.transaction_id,
            g.customer_id, g.amount_minor, g.currency, g.opened_at, g.updated_at, g.resolved_at, g.facts, ?
     from jsonb_to_recordset(?::jsonb) as g
       (key text, occurrence integer, rule text, severity text, state text, stage text, order_id text,
        subscription_id text, transaction_id text, customer_id text, amount_minor bigint, currency text,
        opened_at timestamptz, updated_at timestamptz, resolved_at timestamptz, facts jsonb)
     on conflict (key, occurrence) do update set
       rule = excluded.rule, severity = excluded.severity, stage = excluded.stage,
       state = case when a.state = 'acknowledged' and excluded.state = 'open' then a.state else excluded.state end,
       order_id = excluded.order_id, subscription_id = excluded.subscription_id,
       transaction_id = excluded.transaction_id, customer_id = excluded.customer_id,
       amount_minor = excluded.amount_minor, currency = excluded.currency, opened_at = excluded.opened_at,
       updated_at = excluded.updated_at, resolved_at = excluded.resolved_at, facts = excluded.facts
     returning key, occurrence, id`,
    [foundBy, storableJson(changes.map(({ timeline, occurrence }) => rowOf(timeline, occurrence)))],
  );
  return new Map(rows.map(({ id, ...row }) => [nameOf(row), Number(id)]));
}

function rowOf(timeline: Timeline, occurrence: number): Record<string, unknown> {
  const { key, subject, amountMinor, currency, facts, stages } = timeline;
  const [last, active] = [lastTransition(timeline), lastActiveTransition(timeline)];
  const isResolved = last.change === "resolved";
  return {
    key,
    occurrence,
    rule: active.rule,
    severity: active.severity,
    state: isResolved ? "resolved" : "open",
    stage: last.name,
    order_id: subject.orderId,
    subscription_id: subject.subscriptionId,
    transaction_id: subject.transactionId,
    customer_id: subject.customerId,
    // As text, because JSON numbers lose digits above 2^53.
    amount_minor: amountMinor?.toString() ?? null,
    currency,
    opened_at: stages[0].at,
    updated_at: last.at,
    resolved_at: isResolved ? last.at : null,
    facts: { title: active.title, advice: active.advice, ...facts },
  };
}

export interface HistoryEntry {
  alertId: number;
  change: "opened" | "updated" | "escalated" | "acknowledged" | "resolved";
  stage: string;
  at: Date;
  detail?: Readonly<Record<string, unknown>>;
}

/** Adds missing transitions to the histories of alerts. One statement; idempotent. */
export async function writeHistory(trx: Knex, entries: readonly HistoryEntry[], foundBy: ChangedBy): Promise<void> {
  if (entries.length === 0) return;
  const rows = entries.map(({ alertId, change, stage, at, detail }) => {
    return { alert_id: alertId, change, stage, at, detail: detail ?? {} };
  });
  await trx.raw(
    `insert into alerts.history (alert_id, change, stage, at, detail, found_by)
     select g.*, ? from jsonb_to_recordset(?::jsonb) as g
       (alert_id bigint, change text, stage text, at timestamptz, detail jsonb)
     on conflict (alert_id, stage) do nothing`,
    [foundBy, storableJson(rows)],
  );
}

export const alertStates = ["open", "acknowledged", "resolved"] as const;
export type AlertState = (typeof alertStates)[number];

/** An alert as commands show it; snake_case, like all JSON output. */
export interface AlertRow {
  id: string;
  key: string;
  occurrence: number;
  rule: string;
  severity: AlertSeverity;
  state: AlertState;
  stage: string;
  order_id: string | null;
  subscription_id: string | null;
  transaction_id: string | null;
  customer_id: string | null;
  amount_minor: string | null;
  currency: string | null;
  opened_at: Date;
  updated_at: Date;
  resolved_at: Date | null;
  escalated_at: Date | null;
  acknowledged_at: Date | null;
  acknowledged_by: string | null;
  acknowledged_note: string | null;
  facts: Record<string, unknown>;
  found_by: string;
  /** Until when its messages are silenced; null where they are not, and once it is resolved. */
  silenced_until: Date | null;
}

export interface AlertFilter {
  /** If omitted: every state but resolved. */
  states?: readonly AlertState[] | undefined;
  /** Only those whose messages wait for the end of a silence. */
  silenced?: boolean;
  rule?: string | null;
  severity?: AlertSeverity | null;
  /** The id of an alert's subject: an order, a subscription, a transaction or a customer. */
  object?: string | null;
  /** Alerts older than this one: its number. */
  before?: number | null;
  limit: number;
}

const silencedUntil = `(select h.ends_at from (${holding("a.severity")}) h where a.state <> 'resolved')`;

const columns = (db: Knex) => [
  "id",
  "key",
  "occurrence",
  "rule",
  "severity",
  "state",
  "stage",
  "order_id",
  "subscription_id",
  "transaction_id",
  "customer_id",
  "amount_minor",
  "currency",
  "opened_at",
  "updated_at",
  "resolved_at",
  "escalated_at",
  "acknowledged_at",
  "acknowledged_by",
  "acknowledged_note",
  "facts",
  "found_by",
  db.raw(`${silencedUntil} as silenced_until`),
];

const subjects = ["order_id", "subscription_id", "transaction_id", "customer_id"] as const;

/** The newest alerts first. One statement. */
export function listAlerts(
  db: Knex,
  {
    states = ["open", "acknowledged"],
    silenced,
    rule = null,
    severity = null,
    object = null,
    before = null,
    limit,
  }: AlertFilter,
): Promise<AlertRow[]> {
  const query = db("alerts.alerts as a")
    .whereIn("state", [...states])
    .orderBy("id", "desc")
    .limit(limit);
  if (rule !== null) void query.where({ rule });
  if (severity !== null) void query.where({ severity });
  if (silenced === true) void query.whereRaw(`${silencedUntil} is not null`);
  if (before !== null) void query.where("id", "<", before);
  if (object !== null) {
    void query.where((about) => {
      for (const subject of subjects) void about.orWhere(subject, object);
    });
  }
  return query.select<AlertRow[]>(columns(db));
}

/** The number of unresolved alerts of a severity. */
export interface UnresolvedCount {
  severity: AlertSeverity;
  alerts: number;
  /** Unacknowledged ones among them. */
  open: number;
  /** Silenced ones among them. */
  silenced: number;
}

/**
 * How many alerts are not resolved, the most urgent first. Counts no further than `most` in all, the newest. One
 * statement.
 */
export async function countUnresolved(db: Knex, { most }: { most: number }): Promise<UnresolvedCount[]> {
  const { rows } = await db.raw<{ rows: Record<keyof UnresolvedCount, string>[] }>(
    `select severity, count(*) as alerts, count(*) filter (where state = 'open') as open,
            count(*) filter (where is_silenced) as silenced
     from (
       select a.severity, a.state, exists (${holding("a.severity")}) as is_silenced
       from alerts.alerts a where a.state <> 'resolved' order by a.created_at desc limit ?
     ) counted
     group by severity`,
    [most],
  );
  return alertSeverities.flatMap((severity) => {
    const row = rows.find((each) => each.severity === severity);
    if (row === undefined) return [];
    const { alerts, open, silenced } = row;
    return [{ severity, alerts: Number(alerts), open: Number(open), silenced: Number(silenced) }];
  });
}

export interface AlertEntry {
  at: Date;
  change: string;
  stage: string;
  found_by: string;
  detail: Record<string, unknown>;
}

/** A message of an alert and its outcome. */
export interface AlertDelivery {
  id: string;
  channel: string;
  stage: string;
  action: string;
  state: string;
  due_at: Date;
  /** When it is tried again after a failed attempt; null where it is due at `due_at`. */
  next_attempt_at: Date | null;
  /** The silence that last made it wait. */
  silence_id: string | null;
  attempts: number;
  sent_at: Date | null;
  last_error: string | null;
  message: AlertMessage;
}

/** An alert's entry in a digest of a channel. */
export interface AlertDigest {
  channel: string;
  stage: string;
  /** When the digest was written; null: the entry waits for the next one. */
  told_at: Date | null;
}

/** A storm's list with an alert that had no message of its own: which list of the incident, and when. */
export interface StormListing {
  channel: string;
  stage: string;
  /** `alone`, `at_once`, `at_end`; `over`: it was resolved before its list was written. */
  told_how: string;
  storm_id: string;
  /** Null: it waits for its list. */
  told_at: Date | null;
}

export interface AlertDetails extends AlertRow {
  history: AlertEntry[];
  messages: AlertDelivery[];
  digests: AlertDigest[];
  stormListings: StormListing[];
}

export async function isAlert(db: Knex, id: number): Promise<boolean> {
  return (await db("alerts.alerts").where({ id }).first("id")) !== undefined;
}

/** One alert with its history and its messages; null for an unknown number. */
export async function findAlert(db: Knex, id: number): Promise<AlertDetails | null> {
  const row = await db("alerts.alerts as a").where({ id }).first<AlertRow | undefined>(columns(db));
  if (row === undefined) return null;
  const history = await db("alerts.history")
    .where("alert_id", id)
    .orderBy(["at", "id"])
    .select<AlertEntry[]>("at", "change", "stage", "found_by", "detail");
  const messages = await db("alerts.outbox")
    .where("alert_id", id)
    .orderBy("id")
    .select<AlertDelivery[]>(
      "id",
      "channel",
      "stage",
      "action",
      "state",
      "due_at",
      "next_attempt_at",
      "silence_id",
      "attempts",
      "sent_at",
      "last_error",
      "message",
    );
  const digests = await db("alerts.digest_items")
    .where("alert_id", id)
    .orderBy(["queued_at", "channel"])
    .select<AlertDigest[]>("channel", "stage", "told_at");
  const stormListings = await db("alerts.storm_items")
    .where("alert_id", id)
    .orderBy(["queued_at", "channel"])
    .select<StormListing[]>("channel", "stage", "told_how", "storm_id", "told_at");
  return { ...row, history, messages, digests, stormListings };
}

/** An alert, locked until the transaction ends; null where there is none. One statement. */
export async function lockAlert(trx: Knex.Transaction, id: number): Promise<AlertRow | null> {
  const row = await trx("alerts.alerts as a").where({ id }).forUpdate().first<AlertRow | undefined>(columns(trx));
  return row ?? null;
}

/** The newest alert of a key. One statement. */
export async function findAlertByKey(db: Knex, key: string): Promise<number | null> {
  const row = await db("alerts.alerts")
    .where({ key })
    .orderBy("occurrence", "desc")
    .first<{ id: string } | undefined>("id");
  return row === undefined ? null : Number(row.id);
}

/** The number of alerts in each state. */
export async function countAlerts(db: Knex): Promise<Partial<Record<AlertState, number>>> {
  const rows = await db("alerts.alerts")
    .groupBy("state")
    .select<{ state: AlertState; n: string }[]>("state", db.raw("count(*) as n"));
  return Object.fromEntries(rows.map(({ state, n }) => [state, Number(n)]));
}

/** A sequence number or a time is taken before its row is committed. Scans leave out younger rows. */
export const committedAfterSeconds = 15;

/** The watermark that the last sweep left under this name; null where there is none. */
export async function readWatermark<T>(db: Knex, name: string): Promise<T | null> {
  const row = await db("alerts.marks").where({ name }).first<{ value: T } | undefined>("value");
  return row?.value ?? null;
}

/** Writes a watermark for the next sweep. */
export async function writeWatermark(db: Knex, name: string, value: object): Promise<void> {
  await db("alerts.marks")
    .insert({ name, value: JSON.stringify(value), updated_at: db.fn.now() })
    .onConflict("name")
    .merge(["value", "updated_at"]);
}
