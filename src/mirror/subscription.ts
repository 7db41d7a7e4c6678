import { z } from "zod";
import { subscriptionSchema } from "../service/resources/subscription.ts";
import { canonicalObject } from "./canonical.ts";
import {
  cardColumns,
  integerColumn,
  moneyColumn,
  objectAt,
  textColumn,
  timeColumn,
} from "./columns.ts";
import { groupState, readObject } from "./decode.ts";
import type { Decoded, GroupState, Observation } from "./observation.ts";
import type { MirrorTable } from "./table.ts";
import { statusRank } from "./version.ts";

export const subscriptionTable: MirrorTable = {
  name: "subscriptions",
  groups: {
    subscription: {
      versionColumn: "version",
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
        data: "jsonb",
        source_updated_at: "timestamptz",
        content_hash: "text",
      },
    },
    "subscription.detail": {
      versionColumn: "detail_version",
      columns: {
        failure_reason: "text",
        attempt_count: "integer",
        next_retry_at: "timestamptz",
      },
    },
  },
};

const required = z.looseObject(
  subscriptionSchema.pick({ id: true, status: true, customer_id: true, created_at: true }).shape,
);

/** Shown by the detailed answer only (spec, Subscription); names assumed. */
const detailKeys = ["failure_reason", "attempt_count", "next_retry_at"] as const;
const notOwn = new Set<string>(["customer", "cycles", ...detailKeys]);
const planKeys = ["id", "name", "amount", "currency"] as const;

/** A subscription's core and, where the answer or event shows them, its failure details. */
export function decodeSubscription(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { id, updatedAt } = read;
  const { object } = observation;
  // `expand=plan` may embed the whole plan: the summary is what every view of the state shares.
  const plan = objectAt(object, "plan");
  const summary = Object.fromEntries(planKeys.map((key) => [key, plan[key]]));
  if (plan["amount"] != null && !Number.isSafeInteger(plan["amount"])) {
    return { ok: false, thin: false, reason: "plan.amount: must be an integer in minor units" };
  }
  const content = canonicalObject({ ...object, plan: summary }, notOwn);
  const rank = statusRank(content["status"]);
  const state = groupState(observation, { group: "subscription", id, updatedAt, rank, content }, {});
  const columns = {
    customer_id: textColumn(content, "customer_id"),
    plan_id: textColumn(summary, "id"),
    status: textColumn(content, "status"),
    amount: moneyColumn(summary, "amount"),
    currency: textColumn(summary, "currency"),
    current_period_start: timeColumn(content, "current_period_start"),
    current_period_end: timeColumn(content, "current_period_end"),
    current_billing_cycle: integerColumn(content, "current_billing_cycle"),
    total_billing_cycles: integerColumn(content, "total_billing_cycles"),
    next_billing_date: timeColumn(content, "next_billing_date"),
    start_date: timeColumn(content, "start_date"),
    end_date: timeColumn(content, "end_date"),
    canceled_at: timeColumn(content, "canceled_at"),
    ...cardColumns(content),
    created_at: timeColumn(content, "created_at"),
    updated_at: updatedAt,
    data: content,
    source_updated_at: updatedAt,
    content_hash: state.hash,
  };
  const states: GroupState[] = [{ ...state, columns }];
  if (detailKeys.some((key) => Object.hasOwn(object, key))) {
    states.push(detailState(observation, { id, updatedAt }));
  }
  return { ok: true, id, states };
}

function detailState(
  observation: Observation,
  { id, updatedAt }: { id: string; updatedAt: string },
): GroupState {
  const { failure_reason, attempt_count, next_retry_at } = observation.object;
  const content = canonicalObject({ failure_reason, attempt_count, next_retry_at }, new Set());
  const group = { group: "subscription.detail", id, updatedAt, rank: 0, content };
  return groupState(observation, group, {
    failure_reason: textColumn(content, "failure_reason"),
    attempt_count: integerColumn(content, "attempt_count"),
    next_retry_at: timeColumn(content, "next_retry_at"),
  });
}
