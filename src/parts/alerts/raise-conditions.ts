import type { Knex } from "knex";
import { storable } from "../../platform/postgres/values.ts";
import type { AlertContext, FoundBy } from "./alert-context.ts";
import type { AlertSeverity } from "./message.ts";
import { type Announcement, announce } from "./outbox/announce.ts";
import { presumeTold, presumedTold } from "./presume-told.ts";
import type { RuleName } from "./settings.ts";
import { type NewestAlert, nameOf, newestAlerts, writeAlerts, writeHistory } from "./store.ts";
import { holdBack } from "./storms/hold-back.ts";
import type { End } from "./condition.ts";
import {
  type Condition,
  type PlannedChange,
  type Timeline,
  conditionTimeline,
  endTransition,
  planChange,
} from "./timeline.ts";

/**
 * Opens an alert for each condition that has none, and updates the facts of the others. It sends a message where one of
 * their measures has doubled since the last one. Needs a transaction; idempotent.
 */
export async function raise(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  conditions: readonly Condition[],
  foundBy: FoundBy,
): Promise<void> {
  if (conditions.length === 0) return;
  const unique = [
    ...new Map(
      conditions.map((one) => {
        // A key may contain outside text.
        const key = storable(one.key);
        return [key, { ...one, key }];
      }),
    ).values(),
  ];
  const newest = await newestAlerts(
    trx,
    unique.map(({ key }) => key),
  );
  const planned = unique.map((condition): PlannedChange => {
    const last = newest.get(condition.key);
    const stored = last === undefined || last.state === "resolved" ? null : last;
    const timeline = conditionTimeline(condition, stored);
    return planChange(timeline, stored, stored?.occurrence ?? (last?.occurrence ?? 0) + 1);
  });
  await writeTimelines(trx, alertContext, planned, foundBy);
}

export interface Cleared {
  key: string;
  end: End;
  at: Date;
}

/** Resolves the unresolved alerts with these keys. Needs a transaction; idempotent. */
export async function clear(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  cleared: readonly Cleared[],
  foundBy: FoundBy,
): Promise<void> {
  if (cleared.length === 0) return;
  const newest = await newestAlerts(
    trx,
    cleared.map(({ key }) => key),
  );
  const open = [...newest.values()].filter(({ state }) => state !== "resolved");
  if (open.length === 0) return;
  const kept = await trx("alerts.alerts")
    .whereIn(
      "id",
      open.map(({ id }) => id),
    )
    .select<StoredCondition[]>(
      "id",
      "key",
      "rule",
      "severity",
      "facts",
      "order_id",
      "subscription_id",
      "transaction_id",
      "customer_id",
    );
  const planned = kept.flatMap((row): PlannedChange[] => {
    const stored = newest.get(row.key);
    const ended = cleared.find(({ key }) => key === row.key);
    if (stored === undefined || ended === undefined) return [];
    return [planChange(endedTimeline(row, stored, ended), stored, stored.occurrence)];
  });
  await writeTimelines(trx, alertContext, planned, foundBy);
}

/**
 * Resolves the unresolved alerts of a rule, with the end that `endOf` gives for their keys: null keeps one open. Needs
 * a transaction.
 */
export async function clearRule(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { rule, at, endOf }: { rule: RuleName; at: Date; endOf(key: string): End | null },
  foundBy: FoundBy,
): Promise<void> {
  const open = await trx("alerts.alerts").where({ rule }).whereNot("state", "resolved").pluck<string[]>("key");
  const ended = open.flatMap((key) => {
    const end = endOf(key);
    return end === null ? [] : [{ key, end, at }];
  });
  await clear(trx, alertContext, ended, foundBy);
}

interface StoredCondition {
  id: string;
  key: string;
  rule: RuleName;
  severity: AlertSeverity;
  facts: Timeline["facts"];
  order_id: string | null;
  subscription_id: string | null;
  transaction_id: string | null;
  customer_id: string | null;
}

function endedTimeline(row: StoredCondition, stored: NewestAlert, { end, at }: Cleared): Timeline {
  const stage = endTransition(row, end, at);
  return {
    key: row.key,
    // An erasure finds the alert by it, even when the alert is over.
    subject: {
      orderId: row.order_id,
      subscriptionId: row.subscription_id,
      transactionId: row.transaction_id,
      customerId: row.customer_id,
    },
    amountMinor: null,
    currency: null,
    facts: row.facts,
    family: null,
    stages: [{ ...stage, name: "opened", change: "opened", at: stored.openedAt }, stage],
  };
}

/**
 * Brings stored alerts up to their timelines, extends their histories, and queues their messages. Needs the transaction
 * of the change that the timelines describe. Idempotent: a timeline that is already stored changes nothing.
 */
export async function writeTimelines(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  planned: readonly PlannedChange[],
  foundBy: FoundBy,
): Promise<void> {
  // An alert that was opened is followed to its end, even if its rule is off.
  const wanted = planned.filter(
    ({ timeline, newStages }) => isEnabled(alertContext, timeline) || newStages.length < timeline.stages.length,
  );
  if (wanted.length === 0) return;
  const ids = await writeAlerts(trx, wanted, foundBy);
  const idOf = ({ timeline: { key }, occurrence }: PlannedChange): number => {
    const id = ids.get(nameOf({ key, occurrence }));
    if (id === undefined) throw new TypeError("an alert was not written");
    return id;
  };
  await writeHistory(
    trx,
    wanted.flatMap((change) =>
      change.newStages.map((stage) => ({
        alertId: idOf(change),
        change: stage.change,
        stage: stage.name,
        at: stage.at,
        ...(change.isTold === true ? { detail: presumedTold } : {}),
      })),
    ),
    foundBy,
  );
  const announcementsOf = (told: boolean): Announcement[] =>
    wanted.flatMap((change) => {
      const { timeline, occurrence, announced, isTold = false } = change;
      const openedAt = timeline.stages[0].at;
      return announced === null || isTold !== told
        ? []
        : [{ alertId: idOf(change), occurrence, openedAt, timeline, stage: announced }];
    });
  await presumeTold(trx, alertContext, announcementsOf(true));
  await announce(trx, alertContext, await holdBack(trx, alertContext, announcementsOf(false)));
}

/** A timeline becomes an alert if any of its rules is on. */
const isEnabled = ({ settings }: AlertContext, { stages }: Timeline): boolean =>
  stages.some(({ change, rule }) => change !== "resolved" && settings.rules[rule].enabled);
