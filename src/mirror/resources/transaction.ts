import { z } from "zod";
import { isPlausibleAmount, transactionSchema } from "../../contract/resources/transactions.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { type WireObject, signedMinorUnits, wireId } from "../../contract/wire-types.ts";
import { canonicalContent } from "../canonical.ts";
import {
  type Decoded,
  type GroupState,
  type ObjectKey,
  type Observation,
  groupState,
} from "../snapshot.ts";
import { isSettledBy, seenUntil, seenUntilWithin, statusRank } from "../version.ts";
import {
  type MirrorTable,
  type Readable,
  cardColumns,
  codeColumn,
  codeSql,
  idColumn,
  integerColumn,
  moneyColumn,
  readObject,
  textColumn,
  timeColumn,
} from "./resource.ts";

/**
 * A transaction is seen as itself and, in fewer fields, inside its order. As itself it settles every field it
 * has, but for the status: there the later of the two looks counts (of two at the same time, the one that shows
 * the later change), since no event announces a transaction and an order's event may be the first to show a
 * chargeback. What only the order's entry knows stays.
 */
export const transactionTable: MirrorTable = {
  name: "transactions",
  core: "transaction",
  groups: {
    transaction: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      columns: {},
    },
    "transaction.inline": {
      versionColumn: "inline_version",
      contentColumn: "inline",
      inHistory: true,
      columns: { attempt_count: "integer" },
    },
  },
  shared: {
    with: "transaction.inline",
    columns: {
      type: "text",
      amount: "bigint",
      currency: "text",
      customer_id: "text",
      failure_reason: "text",
      payment_method_id: "text",
      card_brand: "text",
      card_last_four: "text",
      created_at: "timestamptz",
      updated_at: "timestamptz",
    },
  },
  computed: {
    status: (row) =>
      `case when ${seenUntilWithin(row("inline_version"))} > ${seenUntil(row("version"))} || left(${row("version")}, 27)
       then ${codeSql(`${row("inline")}->>'status'`)} else ${codeSql(`${row("data")}->>'status'`)} end`,
    order_id: (row) => `coalesce(${row("data")}->>'order_id', ${row("inline")}->>'order_id')`,
    failure_code: (row) =>
      `coalesce(${row("data")}->>'failure_code', ${row("inline")}->>'failure_code')`,
    processor_transaction_id: (row) =>
      `coalesce(${row("inline")}->>'processor_transaction_id',
                ${row("data")}->'processor_response'->>'transaction_id')`,
  },
  shown: { status: (core) => codeSql(`${core("content")}->>'status'`) },
};

const { id, type, status, amount, currency, order_id, created_at } = transactionSchema.shape;
const required = z
  .object({ id, type, status, amount, currency, order_id, created_at })
  .refine(isPlausibleAmount, { path: ["amount"], error: "must not be negative" });

const notOwn = new Set(["customer", "order"]);

/** The full transaction. */
export function decodeTransaction(observation: Observation): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { object } = observation;
  const group = {
    group: "transaction",
    id: read.id,
    updatedAt: read.updatedAt,
    rank: statusRank(object["status"]),
    content: canonicalContent(object, notOwn),
    settledBy: { resource: "transaction", id: read.id },
  } as const;
  const state = groupState(observation, group, {
    type: codeColumn(object, "type"),
    amount: moneyColumn(object, "amount"),
    currency: codeColumn(object, "currency"),
    customer_id: idColumn(object, "customer_id"),
    failure_reason: textColumn(object, "failure_reason"),
    ...cardColumns(object),
    created_at: timeColumn(object, "created_at"),
    updated_at: read.updatedAt,
  });
  return { ok: true, id: read.id, states: [state], unread: [] };
}

/** What the mirror needs of an entry; the spec names neither, so an entry without them is thin. */
const requiredOfEntry = z
  .object({ type: z.string().nullish(), status: z.string(), amount: signedMinorUnits })
  .refine(isPlausibleAmount);

/**
 * The transactions that an order carries. An entry whose status or amount is missing or cannot be read orders a
 * read of the transaction itself; one without a readable id says nothing that could be kept apart from the order.
 */
export function inlineTransactions(
  observation: Observation,
  order: Readable,
): { states: GroupState[]; unread: ObjectKey[] } {
  const states: GroupState[] = [];
  const unread: ObjectKey[] = [];
  const { transactions: embedded } = observation.object;
  if (!Array.isArray(embedded)) return { states, unread };
  for (const entry of embedded as unknown[]) {
    if (typeof entry !== "object" || entry === null || Array.isArray(entry)) continue;
    const transaction = entry as WireObject;
    const id = wireId.safeParse(transaction["id"]);
    if (!id.success) continue;
    if (requiredOfEntry.safeParse(transaction).success) {
      states.push(inlineState(observation, order, { ...transaction, id: id.data }));
    } else {
      unread.push({ resource: "transaction", id: id.data });
    }
  }
  return { states, unread };
}

/**
 * The order was looked at when it last changed, or later; an entry need not have a time of its own. An entry can
 * change while its order keeps its time: then its own time decides, unless a read came late enough to know.
 */
function orderedBy(
  { observedAt }: Observation,
  order: Readable,
  own: string,
): { updatedAt: string; within: string } {
  const updatedAt = own > order.updatedAt ? own : order.updatedAt;
  return { updatedAt, within: isSettledBy(observedAt, updatedAt) ? updatedAt : own };
}

function inlineState(
  observation: Observation,
  order: Readable,
  transaction: WireObject & { id: string },
): GroupState {
  // An order names its customer, currency and card once for all its transactions.
  const of = observation.object;
  const content: WireObject = {
    ...transaction,
    order_id: order.id,
    customer_id: transaction["customer_id"] ?? of["customer_id"],
    currency: transaction["currency"] ?? of["currency"],
  };
  const own = transaction["updated_at"];
  const updatedAt = (typeof own === "string" ? canonicalTimestamp(own) : null) ?? order.updatedAt;
  const group = {
    group: "transaction.inline",
    id: transaction.id,
    updatedAt,
    orderedBy: orderedBy(observation, order, updatedAt),
    rank: statusRank(content["status"]),
    content: canonicalContent(content),
    settledBy: { resource: "order", id: order.id },
  } as const;
  return groupState(observation, group, {
    attempt_count: integerColumn(content, "attempt_count"),
    type: codeColumn(content, "type"),
    amount: moneyColumn(content, "amount"),
    currency: codeColumn(content, "currency"),
    customer_id: idColumn(content, "customer_id"),
    failure_reason: textColumn(content, "failure_reason"),
    ...cardColumns({ payment_method: transaction["payment_method"] ?? of["payment_method"] }),
    created_at: timeColumn(content, "created_at"),
    updated_at: updatedAt,
  });
}
