import { z } from "zod";
import { transactionSchema } from "../service/resources/transaction.ts";
import { wireId } from "../service/resources/wire-types.ts";
import { canonicalObject } from "./canonical.ts";
import { cardColumns, integerColumn, moneyColumn, textColumn, timeColumn } from "./columns.ts";
import { groupState, readObject } from "./decode.ts";
import type { Readable } from "./decode.ts";
import type { Decoded, GroupState, Observation } from "./observation.ts";
import type { MirrorTable } from "./table.ts";
import { seenUntil, statusRank } from "./version.ts";

/**
 * A transaction is seen as itself and, in fewer fields, inside its order. As itself it settles every field it
 * has, but for the status: there the later of the two looks counts, since no event announces a transaction and
 * an order's event may be the first to show a chargeback.
 */
export const transactionTable: MirrorTable = {
  name: "transactions",
  groups: {
    transaction: {
      versionColumn: "version",
      columns: {
        data: "jsonb",
        seen_until: "text",
        source_updated_at: "timestamptz",
        content_hash: "text",
      },
    },
    "transaction.inline": {
      versionColumn: "inline_version",
      columns: { inline: "jsonb", attempt_count: "integer" },
    },
  },
  shared: {
    type: "text",
    amount: "bigint",
    currency: "text",
    customer_id: "text",
    order_id: "text",
    failure_reason: "text",
    failure_code: "text",
    payment_method_id: "text",
    card_brand: "text",
    card_last_four: "text",
    created_at: "timestamptz",
    updated_at: "timestamptz",
  },
  computed: {
    status: (row) =>
      `case when left(${row("inline_version")}, 27) > ${row("seen_until")}
       then ${row("inline")}->>'status' else ${row("data")}->>'status' end`,
    processor_transaction_id: (row) =>
      `coalesce(${row("inline")}->>'processor_transaction_id',
                ${row("data")}->'processor_response'->>'transaction_id')`,
  },
};

const { id, type, status, amount, currency, created_at } = transactionSchema.shape;
const required = z.looseObject({ id, type, status, amount, currency, created_at });

const notOwn = new Set(["customer", "order"]);

/** The full transaction. */
export function decodeTransaction(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { id, updatedAt } = read;
  const content = canonicalObject(observation.object, notOwn);
  const rank = statusRank(content["status"]);
  const group = { group: "transaction", id, updatedAt, rank, content };
  const state = groupState(observation, group, {});
  const columns = {
    type: textColumn(content, "type"),
    amount: moneyColumn(content, "amount"),
    currency: textColumn(content, "currency"),
    customer_id: textColumn(content, "customer_id"),
    order_id: textColumn(content, "order_id"),
    failure_reason: textColumn(content, "failure_reason"),
    failure_code: textColumn(content, "failure_code"),
    ...cardColumns(content),
    created_at: timeColumn(content, "created_at"),
    updated_at: updatedAt,
    data: content,
    seen_until: seenUntil({ ...state, rank }),
    source_updated_at: updatedAt,
    content_hash: state.hash,
  };
  return { ok: true, id, states: [{ ...state, columns }] };
}

/**
 * The transactions that an order carries. They belong to the order's state, so they bear its version; an entry
 * without a readable id or status says nothing that could be kept apart from the order.
 */
export function inlineTransactionStates(
  observation: Observation,
  { id: orderId, updatedAt }: Readable,
): GroupState[] {
  const { transactions: embedded } = observation.object;
  if (!Array.isArray(embedded)) return [];
  return embedded.flatMap((entry: unknown) => {
    if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return [];
    const transaction = entry as Readonly<Record<string, unknown>>;
    const id = wireId.safeParse(transaction["id"]);
    const hasStatus = typeof transaction["status"] === "string";
    return id.success && hasStatus
      ? [inlineState(observation, { id: orderId, updatedAt }, { ...transaction, id: id.data })]
      : [];
  });
}

function inlineState(
  observation: Observation,
  order: Readable,
  transaction: Readonly<Record<string, unknown>> & { id: string },
): GroupState {
  // An order names its customer and currency once for all its transactions.
  const { customer_id, currency } = observation.object;
  const content = canonicalObject(
    { customer_id, currency, ...transaction, order_id: order.id },
    notOwn,
  );
  const rank = statusRank(content["status"]);
  const group = {
    group: "transaction.inline",
    id: transaction.id,
    updatedAt: order.updatedAt,
    rank,
    content,
  };
  return groupState(observation, group, {
    inline: content,
    attempt_count: integerColumn(content, "attempt_count"),
    type: textColumn(content, "type"),
    amount: moneyColumn(content, "amount"),
    currency: textColumn(content, "currency"),
    customer_id: textColumn(content, "customer_id"),
    order_id: order.id,
    failure_reason: textColumn(content, "failure_reason"),
    failure_code: textColumn(content, "failure_code"),
    ...cardColumns({ payment_method: observation.object["payment_method"], ...content }),
    created_at: timeColumn(content, "created_at"),
    updated_at: timeColumn(content, "updated_at") ?? order.updatedAt,
  });
}
