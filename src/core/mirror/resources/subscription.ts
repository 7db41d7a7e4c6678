import { z } from "zod";
import {
  getSubscription,
  listSubscriptions,
  planSummarySchema,
  subscriptionSchema,
  subscriptionStatuses,
} from "../../contract/resources/subscriptions.ts";
import { canonicalContent } from "../canonical.ts";
import { type Decoded, type GroupState, type Snapshot, groupState } from "../snapshot.ts";
import {
  type Columns,
  type MirrorResource,
  type Readable,
  absentFieldsOf,
  cardColumns,
  changedAt,
  code,
  currencyColumn,
  fieldsOf,
  integer,
  knownCurrencies,
  money,
  objectAt,
  plainText,
  rankOfStatus,
  readColumns,
  readObject,
  reference,
  time,
  unreadable,
  nested,
} from "./resource.ts";

declare module "../snapshot.ts" {
  interface ResourceNames {
    subscription: true;
  }
}

const core = {
  customer_id: reference,
  plan_id: nested("plan", "id", reference),
  status: code,
  amount: nested("plan", "amount", money),
  currency: nested("plan", "currency", currencyColumn),
  current_period_start: time,
  current_period_end: time,
  current_billing_cycle: integer,
  total_billing_cycles: integer,
  next_billing_date: time,
  start_date: time,
  end_date: time,
  canceled_at: time,
  ...cardColumns,
  created_at: time,
  updated_at: changedAt,
} satisfies Columns;

const detail = {
  failure_reason: plainText,
  attempt_count: integer,
  next_retry_at: time,
} satisfies Columns;

export const subscription: MirrorResource = {
  name: "subscription",
  table: "subscriptions",
  service: { list: listSubscriptions, object: getSubscription },
  owner: "customer_id",
  groups: {
    subscription: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      rank: rankOfStatus,
      columns: core,
    },
    "subscription.detail": { versionColumn: "detail_version", inHistory: true, columns: detail },
  },
  keptOnErasure: {
    number: "current_billing_cycle total_billing_cycles",
    time: "current_period_start current_period_end next_billing_date start_date",
  },
  openCondition: `m.status in ('active', 'paused', 'past_due')`,
  announcedFields: new Set([
    "status",
    "current_billing_cycle",
    "next_billing_date",
    "current_period_end",
    "payment_method_id",
    "canceled_at",
    "amount",
    "plan_id",
  ]),
  amount: "amount",
  watched: ["status", "plan_id", "current_billing_cycle"],
  known: {
    fields: new Set([...Object.keys(subscriptionSchema.shape), "customer"]),
    codes: { status: new Set(subscriptionStatuses), currency: knownCurrencies },
  },
  decode,
};

const { id, status, customer_id, created_at } = subscriptionSchema.shape;
const required = z.object({ id, status, customer_id, created_at });
const planMoney = planSummarySchema.pick({ amount: true });

/** Only the read by id shows these. The interface describes them without names; the names here are assumed. */
const detailKeys = Object.keys(detail);
const notCoreFields = new Set(["customer", "cycles", ...detailKeys]);
const planKeys = ["id", "name", "amount", "currency"] as const;

const absentFields = absentFieldsOf(fieldsOf(subscriptionSchema, notCoreFields), core);
const absentDetails = absentFieldsOf(detailKeys, {});

/** A subscription's core, and its failure details if the answer or event shows them. */
function decode(observation: Snapshot): Decoded {
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
  observation: Snapshot,
  { id: subscriptionId, updatedAt }: Readable,
  plan: Readonly<Record<string, unknown>>,
): GroupState {
  const { object } = observation;
  // `expand=plan` may embed the whole plan. Every view of the state has the summary, so only that counts.
  const summary = Object.fromEntries(planKeys.map((key) => [key, plan[key]]));
  const group = {
    group: "subscription",
    id: subscriptionId,
    updatedAt,
    rank: rankOfStatus(object),
    content: canonicalContent({ ...object, plan: summary }, notCoreFields),
    confirmedBy: { resource: "subscription", id: subscriptionId },
    absentFields: absentFields(observation, object),
  } as const;
  return groupState(observation, group, readColumns(core, object, updatedAt));
}

function detailState(observation: Snapshot, { id: subscriptionId, updatedAt }: Readable): GroupState {
  const { object } = observation;
  const { failure_reason, attempt_count, next_retry_at } = object;
  const group = {
    group: "subscription.detail",
    id: subscriptionId,
    updatedAt,
    rank: 0,
    content: canonicalContent({ failure_reason, attempt_count, next_retry_at }),
    confirmedBy: { resource: "subscription", id: subscriptionId },
    absentFields: absentDetails(observation, object),
  } as const;
  return groupState(observation, group, readColumns(detail, object, updatedAt));
}
