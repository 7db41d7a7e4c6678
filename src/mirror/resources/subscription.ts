import { z } from "zod";
import { planSummarySchema, subscriptionSchema } from "../../contract/resources/subscriptions.ts";
import { canonicalContent } from "../canonical.ts";
import { type Decoded, type GroupState, type Observation, groupState } from "../snapshot.ts";
import { statusRank } from "../version.ts";
import {
  type MirrorTable,
  type Readable,
  cardColumns,
  codeColumn,
  idColumn,
  integerColumn,
  moneyColumn,
  objectAt,
  readObject,
  textColumn,
  timeColumn,
  unreadable,
} from "./resource.ts";

export const subscriptionTable: MirrorTable = {
  name: "subscriptions",
  core: "subscription",
  groups: {
    subscription: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      columns: {
        customer_id: "text",
        plan_id: "text",
        status: "text",
        amount: "bigint",
        currency: "text",
        current_period_start: "timestamptz",
        current_period_end: "timestamptz",
        current_billing_cycle: "integer",
        total_billing_cycles: "integer",
        next_billing_date: "timestamptz",
        start_date: "timestamptz",
        end_date: "timestamptz",
        canceled_at: "timestamptz",
        payment_method_id: "text",
        card_brand: "text",
        card_last_four: "text",
        created_at: "timestamptz",
        updated_at: "timestamptz",
      },
    },
    "subscription.detail": {
      versionColumn: "detail_version",
      inHistory: true,
      columns: {
        failure_reason: "text",
        attempt_count: "integer",
        next_retry_at: "timestamptz",
      },
    },
  },
};

const { id, status, customer_id, created_at } = subscriptionSchema.shape;
const required = z.object({ id, status, customer_id, created_at });
const planMoney = planSummarySchema.pick({ amount: true });

/** Shown by the detailed answer only (spec, Subscription); names assumed. */
const detailKeys = ["failure_reason", "attempt_count", "next_retry_at"] as const;
const notOwn = new Set<string>(["customer", "cycles", ...detailKeys]);
const planKeys = ["id", "name", "amount", "currency"] as const;

/** A subscription's core and, where the answer or event shows them, its failure details. */
export function decodeSubscription(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { object } = observation;
  const plan = objectAt(object, "plan");
  const money = planMoney.safeParse(plan);
  if (!money.success) return unreadable("plan", money.error);
  const states = [coreState(observation, read, plan)];
  if (detailKeys.some((key) => Object.hasOwn(object, key))) {
    states.push(detailState(observation, read));
  }
  return { ok: true, id: read.id, states, unread: [] };
}

function coreState(
  observation: Observation,
  { id: subscriptionId, updatedAt }: Readable,
  plan: Readonly<Record<string, unknown>>,
): GroupState {
  const { object } = observation;
  // `expand=plan` may embed the whole plan: the summary is what every view of the state shares.
  const summary = Object.fromEntries(planKeys.map((key) => [key, plan[key]]));
  const group = {
    group: "subscription",
    id: subscriptionId,
    updatedAt,
    rank: statusRank(object["status"]),
    content: canonicalContent({ ...object, plan: summary }, notOwn),
    settledBy: { resource: "subscription", id: subscriptionId },
  } as const;
  return groupState(observation, group, {
    customer_id: idColumn(object, "customer_id"),
    plan_id: idColumn(plan, "id"),
    status: codeColumn(object, "status"),
    amount: moneyColumn(plan, "amount"),
    currency: codeColumn(plan, "currency"),
    current_period_start: timeColumn(object, "current_period_start"),
    current_period_end: timeColumn(object, "current_period_end"),
    current_billing_cycle: integerColumn(object, "current_billing_cycle"),
    total_billing_cycles: integerColumn(object, "total_billing_cycles"),
    next_billing_date: timeColumn(object, "next_billing_date"),
    start_date: timeColumn(object, "start_date"),
    end_date: timeColumn(object, "end_date"),
    canceled_at: timeColumn(object, "canceled_at"),
    ...cardColumns(object),
    created_at: timeColumn(object, "created_at"),
    updated_at: updatedAt,
  });
}

function detailState(
  observation: Observation,
  { id: subscriptionId, updatedAt }: Readable,
): GroupState {
  const { object } = observation;
  const { failure_reason, attempt_count, next_retry_at } = object;
  const group = {
    group: "subscription.detail",
    id: subscriptionId,
    updatedAt,
    rank: 0,
    content: canonicalContent({ failure_reason, attempt_count, next_retry_at }),
    settledBy: { resource: "subscription", id: subscriptionId },
  } as const;
  return groupState(observation, group, {
    failure_reason: textColumn(object, "failure_reason"),
    attempt_count: integerColumn(object, "attempt_count"),
    next_retry_at: timeColumn(object, "next_retry_at"),
  });
}
