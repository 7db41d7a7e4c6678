import { z } from "zod";
import { failureCodes } from "../../contract/decline-codes.ts";
import { getOrder, listOrders, orderSchema, orderStatuses } from "../../contract/resources/orders.ts";
import { canonicalContent, canonicalList } from "../canonical.ts";
import { type Decoded, type GroupState, type Snapshot, groupState } from "../snapshot.ts";
import {
  type Columns,
  type MirrorResource,
  type Readable,
  type Source,
  absentFieldsOf,
  cardColumns,
  changedAt,
  code,
  currencyColumn,
  fieldsOf,
  indexed,
  integer,
  knownCurrencies,
  money,
  personalText,
  plainText,
  readColumns,
  rankOfStatus,
  readInteger,
  readObject,
  reference,
  time,
  versionTime,
  nested,
} from "./resource.ts";
import { inlineTransactions } from "./transaction.ts";

declare module "../snapshot.ts" {
  interface ResourceNames {
    order: true;
  }
}

const core = {
  order_number: indexed(plainText),
  customer_id: reference,
  status: code,
  subtotal: money,
  discount_amount: money,
  total: money,
  currency: currencyColumn,
  description: personalText,
  failure_code: plainText,
  failure_reason: plainText,
  subscription_id: reference,
  subscription_cycle: integer,
  ...cardColumns,
  coupon_code: nested("applied_coupon", "code", plainText),
  created_at: time,
  updated_at: changedAt,
} satisfies Columns;

const dunning = { attempt_count: integer, next_retry_at: time } satisfies Columns;

/** No read can confirm a tie, so the number of attempts orders it: it only grows. A rank has one digit. */
const rankOfAttempts = (content: Source): number =>
  Math.min(9, Math.max(0, readInteger(content, "attempt_count") ?? 0));

export const order: MirrorResource = {
  name: "order",
  table: "orders",
  service: {
    list: listOrders,
    object: getOrder,
    expand: { object: "transactions", list: "items,transactions" },
  },
  owner: "customer_id",
  groups: {
    order: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      rank: rankOfStatus,
      columns: core,
    },
    "order.dunning": {
      versionColumn: "dunning_version",
      inHistory: true,
      isImpersonal: true,
      rank: rankOfAttempts,
      columns: dunning,
    },
    // Shown only if the request expands them. The items of an order never change, so they need no history.
    "order.items": {
      versionColumn: "items_version",
      contentColumn: "items",
      inHistory: false,
      columns: {},
    },
  },
  keptOnErasure: {
    code: "order_number coupon_code",
    number: "subtotal discount_amount subscription_cycle",
    flag: "next_retry_unknown",
  },
  openCondition: `(m.status in ('pending', 'chargeback', 'refund_failed') or (m.status = 'failed' and m.created_at >= :failedSince))`,
  announcedFields: new Set(["status", "total", "failure_code"]),
  amount: "total",
  watched: ["status", "attempt_count"],
  known: {
    fields: new Set([...Object.keys(orderSchema.shape), "customer"]),
    codes: {
      status: new Set(orderStatuses),
      failure_code: new Set(failureCodes),
      currency: knownCurrencies,
    },
  },
  decode,
};

const { id, status, subtotal, discount_amount, total, currency, created_at } = orderSchema.shape;
const required = z.object({ id, status, subtotal, discount_amount, total, currency, created_at });

/** Expansions, and the dunning fields. Not part of the order's own state. */
const notCoreFields = new Set(["customer", "items", "transactions", "attempt_count", "next_retry_at"]);

const absentFields = absentFieldsOf(fieldsOf(orderSchema, notCoreFields), core);

/**
 * The groups of an order: its core, its items if embedded, the dunning fields if an event carries them, and its inline
 * transactions. No GET shows the dunning fields, so a read never erases them.
 */
function decode(observation: Snapshot): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read.partial ? { ...read, states: partialStates(observation, read.id) } : read;
  const { object } = observation;
  const states = [coreState(observation, read)];
  if (Array.isArray(object["items"])) states.push(itemsState(observation, read, object["items"]));
  if (hasDunning(observation)) states.push(dunningState(observation, read));
  const inline = inlineTransactions(observation, read);
  states.push(...inline.states);
  return { ok: true, id: read.id, states, unread: inline.unread };
}

function coreState(observation: Snapshot, { id: orderId, updatedAt }: Readable): GroupState {
  const { object } = observation;
  const group = {
    group: "order",
    id: orderId,
    updatedAt,
    rank: rankOfStatus(object),
    content: canonicalContent(object, notCoreFields),
    confirmedBy: { resource: "order", id: orderId },
    absentFields: absentFields(observation, object),
  } as const;
  return groupState(observation, group, readColumns(core, object, updatedAt));
}

function itemsState(
  observation: Snapshot,
  { id: orderId, updatedAt }: Readable,
  items: readonly unknown[],
): GroupState {
  const group = { group: "order.items", id: orderId, updatedAt, rank: 0, confirmedBy: null };
  const content = canonicalList("items", items);
  return groupState(observation, { ...group, content }, {});
}

const hasDunning = ({ observedAt, object }: Snapshot): boolean =>
  observedAt === null && (Object.hasOwn(object, "attempt_count") || Object.hasOwn(object, "next_retry_at"));

/** The refetch of a partial order does not show its dunning fields, so they are kept here if their time is known. */
function partialStates(observation: Snapshot, orderId: string): GroupState[] {
  const updatedAt = hasDunning(observation) ? versionTime(observation) : null;
  return updatedAt === null ? [] : [dunningState(observation, { id: orderId, updatedAt })];
}

function dunningState(observation: Snapshot, { id: orderId, updatedAt }: Readable): GroupState {
  const { object } = observation;
  const { attempt_count, next_retry_at, subscription_cycle } = object;
  // A missing key means unknown, while null means that no retry follows. The canonical text drops both.
  const isUnknown = !Object.hasOwn(object, "next_retry_at");
  const group = {
    group: "order.dunning",
    id: orderId,
    updatedAt,
    rank: rankOfAttempts(object),
    content: canonicalContent({
      attempt_count,
      next_retry_at,
      subscription_cycle,
      ...(isUnknown ? { next_retry_unknown: true } : {}),
    }),
    confirmedBy: null,
  };
  return groupState(observation, group, readColumns(dunning, object, updatedAt));
}
