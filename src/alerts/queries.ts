import type { Knex } from "knex";
import type { AlertMessage, AlertSeverity } from "./message.ts";

export const alertStates = ["open", "acknowledged", "resolved"] as const;
export type AlertState = (typeof alertStates)[number];

/** An alert as tools show it; snake_case, as everything that is printed as JSON. */
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
}

export interface AlertFilter {
  /** Left out: what is not resolved. */
  states?: readonly AlertState[];
  rule?: string;
  severity?: AlertSeverity;
  limit: number;
}

const columns = [
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
];

/** The newest alerts first. One statement. */
export function listAlerts(
  db: Knex,
  { states = ["open", "acknowledged"], rule, severity, limit }: AlertFilter,
): Promise<AlertRow[]> {
  return db("alerts.alerts")
    .whereIn("state", [...states])
    .where({
      ...(rule === undefined ? {} : { rule }),
      ...(severity === undefined ? {} : { severity }),
    })
    .orderBy("id", "desc")
    .limit(limit)
    .select<AlertRow[]>(columns);
}

export interface AlertEntry {
  at: Date;
  change: string;
  stage: string;
  found_by: string;
  detail: Record<string, unknown>;
}

/** A message of an alert and what became of it. */
export interface AlertDelivery {
  channel: string;
  stage: string;
  action: string;
  state: string;
  due_at: Date;
  attempts: number;
  sent_at: Date | null;
  last_error: string | null;
  message: AlertMessage;
}

/** A place of an alert on a channel's digest. */
export interface AlertDigest {
  channel: string;
  stage: string;
  /** When the digest was written; null: it waits for the next one. */
  told_at: Date | null;
}

/** How an alert was told in a storm, apart from messages of its own: in which list of the incident, and when. */
export interface StormListing {
  channel: string;
  stage: string;
  /** `alone`, `at_once`, `at_end`; `over`: it was resolved before its list came. */
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

/** One alert with its life and its messages, by its number; null where there is none. */
export async function findAlert(db: Knex, id: number): Promise<AlertDetails | null> {
  const row = await db("alerts.alerts").where({ id }).first<AlertRow | undefined>(columns);
  if (row === undefined) return null;
  const history = await db("alerts.history")
    .where("alert_id", id)
    .orderBy(["at", "id"])
    .select<AlertEntry[]>("at", "change", "stage", "found_by", "detail");
  const messages = await db("alerts.outbox")
    .where("alert_id", id)
    .orderBy("id")
    .select<AlertDelivery[]>(
      "channel",
      "stage",
      "action",
      "state",
      "due_at",
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

/** The newest alert of a key. One statement. */
export async function findAlertByKey(db: Knex, key: string): Promise<number | null> {
  const row = await db("alerts.alerts")
    .where({ key })
    .orderBy("occurrence", "desc")
    .first<{ id: string } | undefined>("id");
  return row === undefined ? null : Number(row.id);
}

/** How many alerts are in which state. */
export async function countAlerts(db: Knex): Promise<Partial<Record<AlertState, number>>> {
  const rows = await db("alerts.alerts")
    .groupBy("state")
    .select<{ state: AlertState; n: string }[]>("state", db.raw("count(*) as n"));
  return Object.fromEntries(rows.map(({ state, n }) => [state, Number(n)]));
}
