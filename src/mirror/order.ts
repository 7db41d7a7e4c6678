import { z } from "zod";
import { orderSchema } from "../service/resources/order.ts";
import { canonicalObject } from "./canonical.ts";
import type { JsonObject } from "./canonical.ts";
import {
  cardColumns,
  integerColumn,
  moneyColumn,
  objectAt,
  textColumn,
  timeColumn,
} from "./columns.ts";
import { groupState, readObject } from "./decode.ts";
import type { Readable } from "./decode.ts";
import type { Decoded, GroupState, Observation } from "./observation.ts";
import type { MirrorTable } from "./table.ts";
import { inlineTransactionStates } from "./transaction.ts";
import { statusRank } from "./version.ts";

export const orderTable: MirrorTable = {
  name: "orders",
  groups: {
    order: {
      versionColumn: "version",
      columns: {
        order_number: "text",
        customer_id: "text",
        status: "text",
        subtotal: "bigint",
        discount_amount: "bigint",
        total: "bigint",
        currency: "text",
        description: "text",
        failure_code: "text",
        failure_reason: "text",
        subscription_id: "text",
        subscription_cycle: "integer",
        payment_method_id: "text",
        card_brand: "text",
        card_last_four: "text",
        coupon_code: "text",
        created_at: "timestamptz",
        updated_at: "timestamptz",
        data: "jsonb",
        source_updated_at: "timestamptz",
        content_hash: "text",
      },
    },
    "order.dunning": {
      versionColumn: "dunning_version",
      columns: { attempt_count: "integer", next_retry_at: "timestamptz" },
    },
    "order.items": { versionColumn: "items_version", columns: { items: "jsonb" } },
  },
};

const required = z.looseObject(
  orderSchema.pick({
    id: true,
    status: true,
    subtotal: true,
    discount_amount: true,
    total: true,
    currency: true,
    created_at: true,
  }).shape,
);

/** Expansions, and what only `order.failed` carries: not part of the order's own state. */
const notOwn = new Set(["customer", "items", "transactions", "attempt_count", "next_retry_at"]);

/**
 * The groups of an order: its core, its items where they were embedded, the dunning fields where an event
 * carries them (no GET does, so a read never erases them), and the transactions it carries inline.
 */
export function decodeOrder(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { object } = observation;
  const states = [coreState(observation, read)];
  if (Array.isArray(object["items"])) states.push(itemsState(observation, read, object["items"]));
  if (observation.observedAt === null && hasDunning(object)) {
    states.push(dunningState(observation, read));
  }
  states.push(...inlineTransactionStates(observation, read));
  return { ok: true, id: read.id, states };
}

function coreState(observation: Observation, { id, updatedAt }: Readable): GroupState {
  const { object } = observation;
  const content = canonicalObject(object, notOwn);
  const rank = statusRank(object["status"]);
  const group = { group: "order", id, updatedAt, rank, content };
  const state = groupState(observation, group, {});
  return {
    ...state,
    columns: {
      order_number: textColumn(content, "order_number"),
      customer_id: textColumn(content, "customer_id"),
      status: textColumn(content, "status"),
      subtotal: moneyColumn(content, "subtotal"),
      discount_amount: moneyColumn(content, "discount_amount"),
      total: moneyColumn(content, "total"),
      currency: textColumn(content, "currency"),
      description: textColumn(content, "description"),
      failure_code: textColumn(content, "failure_code"),
      failure_reason: textColumn(content, "failure_reason"),
      subscription_id: textColumn(content, "subscription_id"),
      subscription_cycle: integerColumn(content, "subscription_cycle"),
      ...cardColumns(content),
      coupon_code: textColumn(objectAt(content, "applied_coupon"), "code"),
      created_at: timeColumn(content, "created_at"),
      updated_at: updatedAt,
      data: content,
      source_updated_at: updatedAt,
      content_hash: state.hash,
    },
  };
}

function itemsState(
  observation: Observation,
  { id, updatedAt }: Readable,
  embedded: readonly unknown[],
): GroupState {
  const content = canonicalObject({ items: embedded }, new Set());
  const items = content["items"] as JsonObject[];
  const group = { group: "order.items", id, updatedAt, rank: 0, content };
  return groupState(observation, group, { items });
}

const hasDunning = (object: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(object, "attempt_count") || Object.hasOwn(object, "next_retry_at");

function dunningState(observation: Observation, { id, updatedAt }: Readable): GroupState {
  const { object } = observation;
  const { attempt_count, next_retry_at, subscription_cycle } = object;
  const content = canonicalObject({ attempt_count, next_retry_at, subscription_cycle }, new Set());
  const group = { group: "order.dunning", id, updatedAt, rank: 0, content };
  return groupState(observation, group, {
    attempt_count: integerColumn(content, "attempt_count"),
    next_retry_at: timeColumn(content, "next_retry_at"),
  });
}
