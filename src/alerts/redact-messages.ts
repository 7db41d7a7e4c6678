import type { Knex } from "knex";
import { inTransaction } from "../platform/transaction.ts";
import { sqlArray } from "../platform/sql-array.ts";
import type { AlertFact, AlertItem, AlertMessage } from "./message.ts";

const redacted = "[redacted]";

/** Facts of a message whose values stay: amounts, codes, counts, times, numbers of orders and ids. */
const keptLabels = new Set([
  "Accepted meanwhile",
  "Amount",
  "At risk",
  "Decline code",
  "Declined",
  "Declined so far",
  "Declined tries",
  "Event",
  "Kind of decline",
  "Last decline",
  "Last try",
  "Lasted",
  "Lost",
  "Next try",
  "Open since",
  "Opened",
  "Order",
  "Past due in all",
  "Paid in a lifetime",
  "Recovered",
  "Refunded before",
  "Subscription",
  "Take it",
]);

interface Theirs {
  customerId: string;
  /** Of everything that belonged to the customer. */
  ids: readonly string[];
  /** By which digests and incidents name those: numbers of their orders. */
  names: readonly string[];
}

/**
 * Takes out of the alerts about a customer, and of the messages about them, sent or waiting, all but ids, codes, amounts
 * and times: titles and advice may name the customer, and so may what somebody noted. Of messages about many alerts it
 * takes the entries about these. Gives back how many alerts there were, and how many messages changed. Opens its own
 * transaction; idempotent.
 */
export async function redactMessages(
  db: Knex,
  theirs: Theirs,
): Promise<{ alerts: number; messages: number }> {
  return inTransaction(db, async (trx) => {
    const alerts = await alertsOf(trx, theirs);
    await redactAlerts(trx, alerts);
    return { alerts: alerts.length, messages: await redactOutbox(trx, alerts, theirs) };
  });
}

async function alertsOf(trx: Knex.Transaction, { customerId, ids }: Theirs): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `select id from alerts.alerts where customer_id = :customerId or order_id = any(:ids::text[])
       or subscription_id = any(:ids::text[]) or transaction_id = any(:ids::text[]) order by id for update`,
    { customerId, ids: sqlArray(ids) },
  );
  return rows.map(({ id }) => id);
}

/** Of an alert's facts stay numbers and what looks like a code or an id. */
async function redactAlerts(trx: Knex.Transaction, alerts: readonly string[]): Promise<void> {
  await trx.raw(
    `update alerts.alerts a set
       acknowledged_note = case when acknowledged_note is not null then :redacted end,
       facts = (select coalesce(jsonb_object_agg(f.key, case
                  when jsonb_typeof(f.value) <> 'string' or f.value #>> '{}' ~ '^[A-Za-z0-9_.:+-]{0,80}$' then f.value
                  else to_jsonb(cast(:redacted as text)) end), '{}')
                from jsonb_each(a.facts) f)
     where id = any(:alerts::bigint[])`,
    { alerts: sqlArray(alerts), redacted },
  );
  await trx.raw(
    `update alerts.history set detail = detail || jsonb_build_object('note', cast(:redacted as text))
     where alert_id = any(:alerts::bigint[]) and detail->>'note' is not null`,
    { alerts: sqlArray(alerts), redacted },
  );
}

interface OutboxRow {
  id: string;
  alert_id: string | null;
  message: AlertMessage;
}

async function redactOutbox(
  trx: Knex.Transaction,
  alerts: readonly string[],
  { customerId, ids, names }: Theirs,
): Promise<number> {
  const marks = [customerId, ...ids, ...names, ...alerts.map((id) => `Alert ${id}`)];
  const { rows } = await trx.raw<{ rows: OutboxRow[] }>(
    `select id, alert_id, message from alerts.outbox
     where alert_id = any(?::bigint[]) or message->'items' is not null order by id for update`,
    [sqlArray(alerts)],
  );
  const theirs = new Set(alerts);
  let changed = 0;
  for (const { id, alert_id, message } of rows) {
    const isTheirs = alert_id !== null && theirs.has(alert_id);
    const left = isTheirs
      ? withoutPersonalTexts(message, marks, theirs)
      : withoutItems(message, marks, theirs);
    if (JSON.stringify(left) === JSON.stringify(message)) continue;
    changed += await trx("alerts.outbox")
      .where({ id })
      .update({ message: JSON.stringify(left) });
  }
  return changed;
}

/** Pure, idempotent. */
function withoutPersonalTexts(
  message: AlertMessage,
  marks: readonly string[],
  theirs: ReadonlySet<string>,
): AlertMessage {
  return withoutItems(
    {
      ...message,
      title: `An alert about a customer who was erased (${message.rule})`,
      advice: "",
      facts: keptFacts(message.facts),
    },
    marks,
    theirs,
  );
}

function withoutItems(
  message: AlertMessage,
  marks: readonly string[],
  theirs: ReadonlySet<string>,
): AlertMessage {
  const { items } = message;
  if (items === undefined) return message;
  return {
    ...message,
    items: items.map((item) =>
      theirs.has(String(item.alertId)) || names(item, marks) ? withoutText(item) : item,
    ),
  };
}

const names = ({ title, facts }: AlertItem, marks: readonly string[]): boolean => {
  const text = [title, ...facts.map(({ value }) => value)].join("\n");
  return marks.some((mark) => text.includes(mark));
};

const withoutText = ({ facts, ...item }: AlertItem): AlertItem => ({
  ...item,
  title: redacted,
  facts: keptFacts(facts),
});

const keptFacts = (facts: readonly AlertFact[]): AlertFact[] =>
  facts.map(({ label, value }) => ({ label, value: keptLabels.has(label) ? value : redacted }));
