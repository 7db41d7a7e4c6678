import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { composeMessage } from "../compose-message.ts";
import type { AlertDesk } from "../desk.ts";
import type { AlertSeverity } from "../message.ts";
import { queueMessages } from "../outbox-rows.ts";
import { quietEnd } from "../route.ts";
import type { AlertSettings, RuleName } from "../settings.ts";
import { writeHistory } from "../stored-alerts.ts";

interface Row {
  id: string;
  key: string;
  occurrence: number;
  rule: RuleName;
  severity: AlertSeverity;
  opened_at: Date;
  facts: { title?: string };
}

/**
 * Takes what nobody has acknowledged to the next step, counted from when it was first to be told: what waits for the end
 * of quiet hours has told nobody yet, and what an incident holds back does not escalate one by one. Needs a transaction; idempotent.
 */
export async function escalate(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  for (const [index, step] of desk.settings.escalation.entries()) {
    await takeStep(trx, desk, { ...step, number: index + 1 });
  }
}

type Step = AlertSettings["escalation"][number] & { number: number };

async function takeStep(
  trx: Knex.Transaction,
  desk: AlertDesk,
  { number, afterMinutes, severities, channels }: Step,
): Promise<void> {
  const now = desk.clock.now();
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `update alerts.alerts a set escalations = :number, escalated_at = :now
     from (select id from alerts.alerts
           where state = 'open' and escalations < :number and severity = any(:severities::text[])
             and created_at <= :now::timestamptz - make_interval(mins => :afterMinutes)
             and exists (select from alerts.outbox o
                         where o.alert_id = alerts.id and o.state in ('pending', 'sent', 'failed')
                           and o.due_at <= :now::timestamptz - make_interval(mins => :afterMinutes))
           order by id limit 200 for update skip locked) due
     where a.id = due.id
     returning a.id, a.key, a.occurrence, a.rule, a.severity, a.opened_at, a.facts`,
    { number, now, severities: sqlArray(severities), afterMinutes },
  );
  const name = `escalated:${number}`;
  await writeHistory(
    trx,
    rows.map(({ id }) => ({ alertId: Number(id), change: "escalated", stage: name, at: now })),
    "sweep",
  );
  await queueMessages(
    trx,
    rows.flatMap(({ id, key, occurrence, rule, severity, opened_at: openedAt, facts }) =>
      channels.map((channel) => ({
        channel,
        alertId: Number(id),
        notBefore: quietEnd(desk, { severity }),
        message: composeMessage({
          key,
          occurrence,
          channel,
          stage: {
            name,
            change: "updated",
            at: now,
            rule,
            severity,
            title: `Nobody has acknowledged this for ${afterMinutes} minutes: ${facts.title ?? key}`,
            advice: `Look at it with "npx tallyhook alerts show ${id}", and take it: "npx tallyhook alerts ack ${id}".`,
            facts: [{ label: "Open since", value: openedAt.toISOString() }],
          },
        }),
      })),
    ),
  );
}
