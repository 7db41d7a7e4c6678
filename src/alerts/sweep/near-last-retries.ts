import type { Knex } from "knex";
import { announce } from "../announce.ts";
import type { Announcement } from "../announce.ts";
import { localTimes } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import { moneyText } from "../../platform/money.ts";
import { noSubject } from "../rules/story.ts";
import { writeHistory } from "../stored-alerts.ts";
import { holdBack } from "../storm.ts";

const hourMs = 3_600_000;

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
  facts: { attempts: number; cycle: number | null; next_retry_at: string };
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
     where a.rule = 'dunning_renewal' and a.state <> 'resolved' and (a.facts->>'attempts')::int >= ?
       and (a.facts->>'next_retry_at')::timestamptz between ? and ?
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
  await announce(trx, desk, await holdBack(trx, desk, announcements));
}

function announcementOf(desk: AlertDesk, row: Row, at: Date): Announcement {
  const { attempts, cycle, next_retry_at: nextRetryAt } = row.facts;
  const amount = moneyText(row.amount_minor, row.currency);
  const retryAt = localTimes(desk)(new Date(nextRetryAt));
  return {
    alertId: Number(row.id),
    occurrence: row.occurrence,
    openedAt: row.opened_at,
    story: {
      key: row.key,
      family: "last-retries",
      subject: {
        ...noSubject,
        orderId: row.order_id,
        subscriptionId: row.subscription_id,
        customerId: row.customer_id,
      },
    },
    stage: {
      name: `last-retry:${attempts}`,
      change: "updated",
      at,
      rule: "dunning_last_retry",
      severity: desk.settings.rules.dunning_last_retry.severity,
      title: `The last retry of renewal ${cycle} of subscription ${row.subscription_id} is near: ${retryAt}, ${amount}`,
      advice:
        "The owner of the account should speak with the customer before it: afterwards the renewal is lost.",
      facts: [
        { label: "Amount", value: amount },
        { label: "Declined attempts", value: String(attempts) },
        { label: "Next retry", value: retryAt },
      ],
      canWait: false,
    },
  };
}
