import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { storableJson } from "../platform/storable-text.ts";
import type { ChangedBy, FoundBy } from "./desk.ts";
import type { PlannedChange, StoredAlert } from "./plan-changes.ts";
import { gravestStage, lastStage } from "./rules/story.ts";
import type { Story } from "./rules/story.ts";

export interface NewestAlert extends StoredAlert {
  key: string;
  occurrence: number;
  openedAt: Date;
  facts: Readonly<Record<string, unknown>>;
}

/** The newest alert of each of these keys, held until the transaction ends. One statement. */
export async function newestAlerts(
  trx: Knex,
  keys: readonly string[],
): Promise<Map<string, NewestAlert>> {
  if (keys.length === 0) return new Map();
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
     from alerts.alerts a
     where a.key = any(?::text[])
       and not exists (select from alerts.alerts b where b.key = a.key and b.occurrence > a.occurrence)
     order by a.key for update of a`,
    [sqlArray(keys)],
  );
  return new Map(
    rows.map(({ id, opened_at: openedAt, stages, ...row }) => [
      row.key,
      { ...row, id: Number(id), openedAt, stages: new Set(stages) },
    ]),
  );
}

/** Brings the rows of alerts up to their stories; gives back their ids by key. One statement; idempotent. */
export async function writeAlerts(
  trx: Knex,
  changes: readonly Pick<PlannedChange, "story" | "occurrence">[],
  foundBy: FoundBy,
): Promise<Map<string, number>> {
  if (changes.length === 0) return new Map();
  const { rows } = await trx.raw<{ rows: { key: string; id: string }[] }>(
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
     returning key, id`,
    [foundBy, storableJson(changes.map(({ story, occurrence }) => rowOf(story, occurrence)))],
  );
  return new Map(rows.map(({ key, id }) => [key, Number(id)]));
}

function rowOf(story: Story, occurrence: number): Record<string, unknown> {
  const { key, subject, amountMinor, currency, facts, stages } = story;
  const [last, gravest] = [lastStage(story), gravestStage(story)];
  const isResolved = last.change === "resolved";
  return {
    key,
    occurrence,
    rule: gravest.rule,
    severity: gravest.severity,
    state: isResolved ? "resolved" : "open",
    stage: last.name,
    order_id: subject.orderId,
    subscription_id: subject.subscriptionId,
    transaction_id: subject.transactionId,
    customer_id: subject.customerId,
    // As text: JSON numbers lose digits above 2^53.
    amount_minor: amountMinor?.toString() ?? null,
    currency,
    opened_at: stages[0].at,
    updated_at: last.at,
    resolved_at: isResolved ? last.at : null,
    facts: { title: gravest.title, advice: gravest.advice, ...facts },
  };
}

export interface HistoryEntry {
  alertId: number;
  change: "opened" | "updated" | "escalated" | "acknowledged" | "resolved";
  stage: string;
  at: Date;
  detail?: Readonly<Record<string, unknown>>;
}

/** Adds to the lives of alerts what they lack. One statement; idempotent. */
export async function writeHistory(
  trx: Knex,
  entries: readonly HistoryEntry[],
  foundBy: ChangedBy,
): Promise<void> {
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
