import type { Knex } from "knex";
import type { Clock } from "../platform/clock.ts";
import { composeMessage } from "./compose-message.ts";
import type { AlertSeverity } from "./message.ts";
import { queueMessages, toldChannels } from "./outbox-rows.ts";
import type { RuleName } from "./settings.ts";
import { writeHistory } from "./stored-alerts.ts";

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
 * Somebody takes an alert: it no longer escalates, and the channels that told of it hear who has it. Opens its own
 * transaction; a second time changes nothing.
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
    const channels = (await toldChannels(trx, [id])).get(id) ?? [];
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
      title: `${by} has taken this: ${facts.title ?? key}`,
      advice: "",
      facts: note === null ? [] : [{ label: "Note", value: note }],
    },
  });
