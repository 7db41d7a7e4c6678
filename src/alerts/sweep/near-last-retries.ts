import type { Knex } from "knex";
import { announce } from "../announce.ts";
import type { Announcement } from "../announce.ts";
import { wordingOf } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import { moneyText } from "../../platform/money.ts";
import { lastRetryStage } from "../rules/last-retry.ts";
import { noSubject } from "../rules/story.ts";
import { writeHistory } from "../stored-alerts.ts";

const hourMs = 3_600_000;

/** Facts that are not what they should be are no reason to tell nobody. */
const attempts = `case when jsonb_typeof(a.facts->'attempts') = 'number' then (a.facts->>'attempts')::numeric end`;
const nextRetryAt = `case when a.facts->>'next_retry_at' ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$'
                          then (a.facts->>'next_retry_at')::timestamptz end`;

interface Row {
  id: string;
  key: string;
  occurrence: number;
  order_id: string | null;
  subscription_id: string | null;
  customer_id: string | null;
  amount_minor: string | null;
  currency: string | null;
  opened_at: Date;
  facts: { attempts: number; next_retry_at: string };
}

/**
 * Tells the owner, once for each, of renewals whose last retry is near. The interface does not say which retry is the
 * last: a setting does (`lastAttempt`). Needs a transaction; idempotent.
 */
export async function tellNearLastRetries(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { dunning_last_retry: rule } = desk.settings.rules;
  if (!rule.enabled) return;
  const now = desk.serviceClock.now();
  const until = new Date(now.getTime() + rule.withinHours * hourMs);
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select a.id, a.key, a.occurrence, a.order_id, a.subscription_id, a.customer_id, a.amount_minor, a.currency, a.opened_at,
            a.facts
     from alerts.alerts a
     where a.rule = 'dunning_renewal' and a.state <> 'resolved' and ${attempts} >= ?
       and ${nextRetryAt} between ? and ?
       and not exists (select from alerts.history h
                       where h.alert_id = a.id and h.stage = 'last-retry:' || (a.facts->>'attempts'))
     order by a.id limit 200 for update of a`,
    [rule.lastAttempt, now, until],
  );
  const announcements = rows.map((row) => announcementOf(desk, row, now));
  await writeHistory(
    trx,
    announcements.map(({ alertId, stage }) => ({
      alertId,
      change: "updated",
      stage: stage.name,
      at: now,
    })),
    "sweep",
  );
  await announce(trx, desk, announcements);
}

function announcementOf(desk: AlertDesk, row: Row, at: Date): Announcement {
  const { attempts, next_retry_at: nextRetryAt } = row.facts;
  const amount = moneyText(row.amount_minor, row.currency);
  return {
    alertId: Number(row.id),
    occurrence: row.occurrence,
    openedAt: row.opened_at,
    story: {
      key: row.key,
      // Told on the daily list, which is one message however many there are.
      family: null,
      subject: {
        ...noSubject,
        orderId: row.order_id,
        subscriptionId: row.subscription_id,
        customerId: row.customer_id,
      },
    },
    stage: lastRetryStage(
      { amount, attempts, retryAt: new Date(nextRetryAt) },
      wordingOf(desk),
      at,
    ),
  };
}
