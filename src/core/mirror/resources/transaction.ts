import { z } from "zod";
import { orderTransactionSchema } from "../../contract/resources/orders.ts";
import {
  isPlausibleAmount,
  getTransaction,
  listTransactions,
  transactionSchema,
  transactionStatuses,
} from "../../contract/resources/transactions.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { type WireObject, signedMinorUnits, wireId } from "../../contract/wire-types.ts";
import { canonicalContent } from "../canonical.ts";
import { type Decoded, type GroupState, type ObjectKey, type Snapshot, groupState } from "../snapshot.ts";
import { isConfirmedBy, shownUntilSql, entryShownUntilSql } from "../version.ts";
import {
  type Columns,
  type MirrorResource,
  type Readable,
  absentFieldsOf,
  cardColumns,
  changedAt,
  code,
  currencyColumn,
  codeSql,
  fieldsOf,
  integer,
  knownCurrencies,
  money,
  plainText,
  rankOfStatus,
  readColumns,
  readObject,
  reference,
  time,
} from "./resource.ts";

declare module "../snapshot.ts" {
  interface ResourceNames {
    transaction: true;
  }
}

const shared = {
  type: code,
  amount: money,
  currency: currencyColumn,
  customer_id: reference,
  failure_reason: plainText,
  ...cardColumns,
  created_at: time,
  updated_at: changedAt,
} satisfies Columns;

const ofEntry = { attempt_count: integer } satisfies Columns;
const inlineColumns = { ...ofEntry, ...shared } satisfies Columns;

/**
 * A transaction is shown by itself and, with fewer fields, as an entry of its order. Its own snapshot decides every
 * field that it has, except the status: there the later of the two snapshots counts, and at equal times the one with
 * the later change. The reason: no event announces a transaction, so an order's event may be the first to show a
 * chargeback. Fields that only the order's entry has are kept.
 */
export const transaction: MirrorResource = {
  name: "transaction",
  table: "transactions",
  service: { list: listTransactions, object: getTransaction },
  owner: "customer_id",
  groups: {
    transaction: {
      versionColumn: "version",
      contentColumn: "data",
      inHistory: true,
      rank: rankOfStatus,
      columns: {},
    },
    "transaction.inline": {
      versionColumn: "inline_version",
      contentColumn: "inline",
      inHistory: true,
      rank: rankOfStatus,
      columns: ofEntry,
    },
  },
  shared: { with: "transaction.inline", columns: shared },
  computed: {
    status: (row) =>
      `case when ${entryShownUntilSql(row("inline_version"))} > ${shownUntilSql(row("version"))} || left(${row("version")}, 27)
       then ${codeSql(`${row("inline")}->>'status'`)} else ${codeSql(`${row("data")}->>'status'`)} end`,
    order_id: (row) => `coalesce(${row("data")}->>'order_id', ${row("inline")}->>'order_id')`,
    failure_code: (row) => `coalesce(${row("data")}->>'failure_code', ${row("inline")}->>'failure_code')`,
    processor_transaction_id: (row) =>
      `coalesce(${row("inline")}->>'processor_transaction_id',
                ${row("data")}->'processor_response'->>'transaction_id')`,
  },
  shown: { status: (core) => codeSql(`${core("content")}->>'status'`) },
  keptOnErasure: {
    reference: "processor_transaction_id",
    result: "response_code avs_result cvv_result",
  },
  openCondition: `(m.status in ('pending', 'in_progress', 'chargeback') or (m.type = 'refund' and m.status = 'failed'))`,
  announcedFields: new Set(["status", "amount"]),
  amount: "amount",
  watched: ["status", "amount"],
  known: {
    fields: new Set([
      ...Object.keys(transactionSchema.shape),
      ...Object.keys(orderTransactionSchema.shape),
      "customer",
      "order",
    ]),
    codes: { status: new Set(transactionStatuses), currency: knownCurrencies },
  },
  decode,
};

const { id, type, status, amount, currency, order_id, created_at } = transactionSchema.shape;
const required = z
  .object({ id, type, status, amount, currency, order_id, created_at })
  .refine(isPlausibleAmount, { path: ["amount"], error: "must not be negative" });

const notCoreFields = new Set(["customer", "order"]);

const absentFields = absentFieldsOf(fieldsOf(transactionSchema, notCoreFields), shared);
/** An order names its customer, currency and card once for all its transactions. */
const absentFieldsOfEntry = absentFieldsOf(fieldsOf(orderTransactionSchema), {});

/** A transaction that is shown by itself. */
function decode(observation: Snapshot): Decoded {
  const read = readObject(required, observation);
  if (!read.ok) return read;
  const { object } = observation;
  const group = {
    group: "transaction",
    id: read.id,
    updatedAt: read.updatedAt,
    rank: rankOfStatus(object),
    content: canonicalContent(object, notCoreFields),
    confirmedBy: { resource: "transaction", id: read.id },
    absentFields: absentFields(observation, object),
  } as const;
  const state = groupState(observation, group, readColumns(shared, object, read.updatedAt));
  return { ok: true, id: read.id, states: [state], unread: [] };
}

/**
 * Fields that the mirror needs in an entry. The interface does not describe an entry, so one that lacks some is
 * partial.
 */
const requiredOfEntry = z
  .object({ type: z.string().nullish(), status: z.string(), amount: signedMinorUnits })
  .refine(isPlausibleAmount);

/**
 * The transactions that an order carries. An entry whose status or amount is missing or unreadable orders a refetch of
 * the transaction. An entry without a readable id is skipped; it stays part of the order's content.
 */
export function inlineTransactions(
  observation: Snapshot,
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
 * Orders the snapshots of an entry by its order's `updated_at`, since an entry need not have its own, or by its own if
 * that is later. An entry can change while its order keeps its time: then the entry's own time decides. A read that is
 * late enough to confirm the state comes after all of that time.
 */
export function entryOrderedBy(
  observedAt: string | null,
  orderUpdatedAt: string,
  own: string,
): { updatedAt: string; within: string } {
  const updatedAt = own > orderUpdatedAt ? own : orderUpdatedAt;
  return { updatedAt, within: isConfirmedBy(observedAt, updatedAt) ? updatedAt : own };
}

function inlineState(observation: Snapshot, order: Readable, transaction: WireObject & { id: string }): GroupState {
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
    orderedBy: entryOrderedBy(observation.observedAt, order.updatedAt, updatedAt),
    rank: rankOfStatus(content),
    content: canonicalContent(content),
    confirmedBy: { resource: "order", id: order.id },
    absentFields: absentFieldsOfEntry(observation, content),
  } as const;
  const card = transaction["payment_method"] ?? of["payment_method"];
  const source = { ...content, payment_method: card };
  return groupState(observation, group, readColumns(inlineColumns, source, updatedAt));
}
