import type { Knex } from "knex";
import type { AlertMessage } from "../../../src/parts/alerts/message.ts";
import { sampleOrder } from "../../mirror/samples.ts";

/** Lets so many minutes pass for everything that the database dated. */
export async function letPass(db: Knex, minutes: number): Promise<void> {
  for (const [table, column] of [
    ["alerts.history", "recorded_at"],
    ["alerts.alerts", "created_at"],
    ["alerts.storm_items", "queued_at"],
    ["alerts.marks", "updated_at"],
  ] as const) {
    await db.raw(`update ${table} set ${column} = ${column} - make_interval(mins => ?)`, [minutes]);
  }
}

/** A declined renewal of a subscription of its own. */
export const lostRenewal = (n: number, time: string, fields: object = {}) =>
  sampleOrder({
    id: `order-${n}`,
    order_number: `NR${n}`,
    customer_id: `customer-${n}`,
    status: "failed",
    failure_code: "expired_card",
    subscription_id: `subscription-${n}`,
    subscription_cycle: 2,
    attempt_count: 4,
    next_retry_at: null,
    total: 1_000 + n,
    created_at: time,
    updated_at: time,
    transactions: [],
    ...fields,
  });

export interface Telling {
  channel: string;
  alertId: number;
  /** Null where a list told it. */
  stage: string | null;
  text: string;
}

/** Every time that an alert of a storm was told: by itself, or as an item of a list. */
export async function tellings(db: Knex): Promise<Telling[]> {
  const rows = await db("alerts.outbox as o")
    .join("alerts.alerts as a", "a.id", "o.alert_id")
    .whereNot("o.state", "dropped")
    .where("o.action", "trigger")
    .whereRaw("(o.is_list or not starts_with(a.key, 'storm:'))")
    .orderBy("o.id")
    .select<{ channel: string; alert_id: string; is_list: boolean; message: AlertMessage }[]>(
      "o.channel",
      "o.alert_id",
      "o.is_list",
      "o.message",
    );
  return rows.flatMap(({ channel, alert_id: id, is_list: isList, message }): Telling[] =>
    isList
      ? (message.items ?? []).map((item) => ({
          channel,
          alertId: item.alertId ?? 0,
          stage: null,
          text: JSON.stringify(item),
        }))
      : [{ channel, alertId: Number(id), stage: message.stage, text: JSON.stringify(message) }],
  );
}
