import type { Knex } from "knex";
import type { Clock } from "../../platform/clock.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { type AlertContext, wordingOf } from "./alert-context.ts";
import { composeMessage } from "./compose-message.ts";
import type { AlertMessage, AlertSeverity } from "./message.ts";
import { quietEnd } from "./outbox/announce.ts";
import { queueMessages, sentChannels } from "./outbox/outbox.ts";
import type { AlertSettings, RuleName } from "./settings.ts";
import { isAbout } from "./silences.ts";
import { writeHistory } from "./store.ts";

interface EscalatedRow {
  id: string;
  opened_at: Date;
  /** The last message about the alert, whether or not its channel accepted it. */
  told: AlertMessage;
}

/**
 * Moves unacknowledged alerts to the next escalation step. Time counts from when the alert was due to be sent: a
 * message that waits for the end of quiet hours has not arrived yet. After a silence it counts from its end. Alerts
 * that a storm holds back do not escalate one by one. Needs a transaction; idempotent.
 */
export async function escalate(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  for (const [index, step] of alertContext.settings.escalation.entries()) {
    await takeStep(trx, alertContext, { ...step, number: index + 1 });
  }
}

type Step = AlertSettings["escalation"][number] & { number: number };

async function takeStep(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { number, afterMinutes, severities, channels }: Step,
): Promise<void> {
  const now = alertContext.clock.now();
  const { rows } = await trx.raw<{ rows: EscalatedRow[] }>(
    `update alerts.alerts a set escalations = :number, escalated_at = :now
     from (select id from alerts.alerts a
           where state = 'open' and escalations < :number and severity = any(:severities::text[])
             and facts->'escalates' is distinct from 'false'::jsonb
             and created_at <= :now::timestamptz - make_interval(mins => :afterMinutes)
             and exists (select from alerts.outbox o
                         where o.alert_id = a.id and o.state in ('pending', 'sent', 'failed')
                           and o.action = 'trigger' and not o.is_list
                           -- An older message may have been less urgent.
                           and o.message->>'severity' = any(:severities::text[])
                           and o.due_at <= :now::timestamptz - make_interval(mins => :afterMinutes))
             and not exists (select from alerts.silences s
                             where ${isAbout("a.severity")}
                               and coalesce(s.ended_at, s.ends_at) > :now::timestamptz - make_interval(mins => :afterMinutes))
           order by id limit 200 for update skip locked) due
     where a.id = due.id
     returning a.id, a.opened_at, (
       select o.message from alerts.outbox o
       where o.alert_id = a.id and o.action = 'trigger' and not o.is_list
         and o.state in ('pending', 'sent', 'failed')
       order by starts_with(o.stage, 'escalated:'), o.id desc limit 1) as told`,
    { number, now, severities: sqlArray(severities), afterMinutes },
  );
  const name = `escalated:${number}`;
  const { localTime } = wordingOf(alertContext);
  await writeHistory(
    trx,
    rows.map(({ id }) => ({ alertId: Number(id), change: "escalated", stage: name, at: now })),
    "sweep",
  );
  await queueMessages(
    trx,
    rows.flatMap(({ id, opened_at: openedAt, told }) =>
      channels.map((channel) => ({
        channel,
        alertId: Number(id),
        notBefore: quietEnd(alertContext, told),
        message: escalationOf(told, {
          channel,
          name,
          afterMinutes,
          id,
          openSince: localTime(openedAt),
          at: now,
        }),
      })),
    ),
  );
}

/** The last message again, for other people: with its amounts, customer, advice and links. */
function escalationOf(
  told: AlertMessage,
  {
    channel,
    name,
    afterMinutes,
    id,
    openSince,
    at,
  }: {
    channel: string;
    name: string;
    afterMinutes: number;
    id: string;
    openSince: string;
    at: Date;
  },
): AlertMessage {
  return {
    ...told,
    idempotencyKey: `${told.dedupKey}/${name}/${channel}`,
    action: "trigger",
    stage: name,
    title: `Not acknowledged for ${afterMinutes} min: ${told.title}`,
    facts: [...told.facts, { label: "Open since", value: openSince }],
    advice: [told.advice, `Acknowledge it: "${tallyhook(`alerts ack ${id}`)}".`].join(" ").trim(),
    at: at.toISOString(),
  };
}

export type Acknowledged = "acknowledged" | "already" | "resolved" | "unknown";

interface AlertToTake {
  key: string;
  occurrence: number;
  rule: RuleName;
  severity: AlertSeverity;
  state: "open" | "acknowledged" | "resolved";
  facts: { title?: string };
}

/**
 * Acknowledges an alert: it no longer escalates, and the channels that got it are notified of the acknowledger. Opens
 * its own transaction. Repeating it changes nothing.
 */
export async function acknowledgeAlert(
  { db, clock }: { db: Knex; clock: Clock },
  { id, by, note }: { id: number; by: string; note: string | null },
): Promise<Acknowledged> {
  return db.transaction(async (trx) => {
    const row = await trx("alerts.alerts")
      .where({ id })
      .forUpdate()
      .first<AlertToTake | undefined>("key", "occurrence", "rule", "severity", "state", "facts");
    if (row === undefined) return "unknown";
    if (row.state !== "open") return row.state === "resolved" ? "resolved" : "already";
    const at = clock.now();
    await trx("alerts.alerts").where({ id }).update({
      state: "acknowledged",
      acknowledged_at: at,
      acknowledged_by: by,
      acknowledged_note: note,
    });
    const entry = { alertId: id, change: "acknowledged", stage: "acknowledged", at } as const;
    await writeHistory(trx, [{ ...entry, detail: { by, note } }], "person");
    const channels = (await sentChannels(trx, [id])).get(id) ?? [];
    await queueMessages(
      trx,
      channels.map((channel) => ({
        channel,
        alertId: id,
        notBefore: null,
        message: { ...takenMessage(row, channel, { by, note, at }), action: "acknowledge" },
      })),
    );
    return "acknowledged";
  });
}

const takenMessage = (
  { key, occurrence, rule, severity, facts }: AlertToTake,
  channel: string,
  { by, note, at }: { by: string; note: string | null; at: Date },
) =>
  composeMessage({
    key,
    occurrence,
    channel,
    stage: {
      name: "acknowledged",
      change: "updated",
      at,
      rule,
      severity,
      title: `${by} acknowledged this: ${facts.title ?? key}`,
      advice: "",
      facts: note === null ? [] : [{ label: "Note", value: note }],
    },
  });
