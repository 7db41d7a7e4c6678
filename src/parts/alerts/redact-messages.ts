import type { Knex } from "knex";
import { mentioning, redacted } from "../../platform/redaction.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { AlertFact, AlertItem, AlertMessage } from "./message.ts";

/** Facts of a message whose values stay: amounts, codes, counts, times, order numbers and ids. */
const keptLabels = new Set([
  "Accepted in that time",
  "Accepted meanwhile", // the label of earlier versions
  "Acknowledge",
  "Amount",
  "At risk",
  "Decline code",
  "Declined",
  "Declined attempts",
  "Event",
  "Kind of decline",
  "Last decline",
  "Last retry",
  "Lasted",
  "Lost",
  "Next retry",
  "Noticed",
  "Open since",
  "Opened",
  "Order",
  "Paid in total",
  "Past due in total",
  "Recovered",
  "Refunded before",
  "Subscription",
  "Trace",
]);

/** Facts of a message that people wrote. */
const writtenLabels = ["Note", "Why"];

interface Theirs {
  customerId: string;
  /** Ids of everything that belonged to the customer. */
  ids: readonly string[];
  /** Numbers of stored events about the customer. */
  seqs: readonly number[];
  /** The names by which texts refer to the customer: order numbers, addresses, names. */
  names: readonly string[];
}

/**
 * Redacts the alerts about a customer and their messages, sent or waiting: only ids, codes, amounts and times stay,
 * since titles, advice and people's notes may name the customer. In messages about many alerts it redacts the entries
 * about these, and in alerts about something else the notes that name the customer. Reasons
 * of silences of the one or the other go, too. Returns the number of alerts and of changed messages. Needs a transaction; idempotent.
 */
export async function redactMessages(
  trx: Knex.Transaction,
  theirs: Theirs,
): Promise<{ alerts: number; messages: number }> {
  const alerts = await alertsAbout(trx, theirs);
  const named = mentioning([theirs.customerId, ...theirs.ids, ...theirs.names]);
  const noted = await notedAlerts(trx, named);
  await redactAlerts(trx, alerts);
  await redactNotes(trx, [...alerts, ...noted]);
  await redactReasons(trx, alerts, named);
  const messages = await redactOutbox(trx, alerts, noted, named);
  return { alerts: alerts.length, messages };
}

/** The alerts about a customer, locked. Needs a transaction. */
export async function alertsAbout(trx: Knex.Transaction, { customerId, ids, seqs }: Theirs): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `select id from alerts.alerts where customer_id = :customerId or order_id = any(:ids::text[])
       or subscription_id = any(:ids::text[]) or transaction_id = any(:ids::text[])
       -- What an alert without a subject is about.
       or facts->>'id' = any(:ids::text[]) or facts->>'seq' = any(:seqs::text[])
     order by id for update`,
    { customerId, ids: sqlArray(ids), seqs: sqlArray(seqs.map(String)) },
  );
  return rows.map(({ id }) => id);
}

/** Alerts with notes that name the person. */
async function notedAlerts(trx: Knex.Transaction, named: (text: string) => boolean): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { id: string; note: string }[] }>(
    `select id, acknowledged_note as note from alerts.alerts where acknowledged_note is not null
     union select alert_id, detail->>'note' from alerts.history where detail->>'note' is not null
     -- Also what somebody gave as the reason of a pause.
     union select o.alert_id, f->>'value' from alerts.outbox o, jsonb_array_elements(o.message->'facts') f
     where o.alert_id is not null and f->>'label' = any(?::text[])`,
    [sqlArray(writtenLabels)],
  );
  return [...new Set(rows.flatMap(({ id, note }) => (named(note) ? [id] : [])))];
}

/** Keeps only numbers and values that look like codes or ids among an alert's facts. */
async function redactAlerts(trx: Knex.Transaction, alerts: readonly string[]): Promise<void> {
  await trx.raw(
    `update alerts.alerts a set facts = (select coalesce(jsonb_object_agg(f.key, case
                  when jsonb_typeof(f.value) <> 'string' or f.value #>> '{}' ~ '^[A-Za-z0-9_.:+-]{0,80}$' then f.value
                  else to_jsonb(cast(:redacted as text)) end), '{}')
                from jsonb_each(a.facts) f)
     where id = any(:alerts::bigint[])`,
    { alerts: sqlArray(alerts), redacted },
  );
}

async function redactNotes(trx: Knex.Transaction, alerts: readonly string[]): Promise<void> {
  await trx.raw(
    `update alerts.alerts set acknowledged_note = :redacted
     where id = any(:alerts::bigint[]) and acknowledged_note is not null`,
    { alerts: sqlArray(alerts), redacted },
  );
  await trx.raw(
    `update alerts.history set detail = detail || jsonb_build_object('note', cast(:redacted as text))
     where alert_id = any(:alerts::bigint[]) and detail->>'note' is not null`,
    { alerts: sqlArray(alerts), redacted },
  );
}

/** Reasons of silences of these alerts, and of others that name the person. */
async function redactReasons(
  trx: Knex.Transaction,
  alerts: readonly string[],
  named: (text: string) => boolean,
): Promise<void> {
  const { rows } = await trx.raw<{ rows: { id: string; reason: string; is_theirs: boolean }[] }>(
    `select s.id, s.reason,
            exists (select from alerts.alerts a where a.key = s.key and a.id = any(?::bigint[])) as is_theirs
     from alerts.silences s where s.reason is not null`,
    [sqlArray(alerts)],
  );
  const theirs = rows.flatMap(({ id, reason, is_theirs: isTheirs }) => (isTheirs || named(reason) ? [id] : []));
  await trx("alerts.silences").whereIn("id", theirs).update({ reason: redacted });
}

interface OutboxRow {
  id: string;
  alert_id: string | null;
  message: AlertMessage;
}

async function redactOutbox(
  trx: Knex.Transaction,
  alerts: readonly string[],
  noted: readonly string[],
  named: (text: string) => boolean,
): Promise<number> {
  const { rows } = await trx.raw<{ rows: OutboxRow[] }>(
    `select id, alert_id, message from alerts.outbox
     where alert_id = any(?::bigint[]) or message->'items' is not null order by id for update`,
    [sqlArray([...alerts, ...noted])],
  );
  const [theirs, withNotes] = [new Set(alerts), new Set(noted)];
  let changed = 0;
  for (const { id, alert_id, message } of rows) {
    const given = alert_id !== null && withNotes.has(alert_id) ? withoutNote(message) : message;
    const isTheirs = alert_id !== null && theirs.has(alert_id);
    const left = withoutItems(isTheirs ? withoutPersonalTexts(given) : given, theirs, named);
    if (JSON.stringify(left) === JSON.stringify(message)) continue;
    changed += await trx("alerts.outbox")
      .where({ id })
      .update({ message: JSON.stringify(left) });
  }
  return changed;
}

const withoutPersonalTexts = (message: AlertMessage): AlertMessage => ({
  ...message,
  title: `An alert about an erased customer (${message.rule})`,
  advice: "",
  facts: keptFacts(message.facts),
});

const withoutNote = (message: AlertMessage): AlertMessage => ({
  ...message,
  facts: message.facts.map((fact) => (writtenLabels.includes(fact.label) ? { ...fact, value: redacted } : fact)),
});

function withoutItems(
  message: AlertMessage,
  theirs: ReadonlySet<string>,
  named: (text: string) => boolean,
): AlertMessage {
  const { items } = message;
  if (items === undefined) return message;
  const isTheirs = ({ alertId, title, facts }: AlertItem): boolean =>
    theirs.has(String(alertId)) || [title, ...facts.map(({ value }) => value)].some(named);
  return { ...message, items: items.map((item) => (isTheirs(item) ? withoutText(item) : item)) };
}

const withoutText = ({ facts, ...item }: AlertItem): AlertItem => ({
  ...item,
  title: redacted,
  facts: keptFacts(facts),
});

const keptFacts = (facts: readonly AlertFact[]): AlertFact[] =>
  facts.map(({ label, value }) => ({ label, value: keptLabels.has(label) ? value : redacted }));
