import { z } from "zod";
import { isPlausibleAmount, transactionSchema } from "../service/resources/transaction.ts";
import { canonicalContent } from "./canonical.ts";
import {
  cardColumns,
  codeColumn,
  codeSql,
  idColumn,
  moneyColumn,
  textColumn,
  timeColumn,
} from "./columns.ts";
import { readObject } from "./decode.ts";
import { groupState } from "./group-state.ts";
import type { Decoded, Observation } from "./observation.ts";
import type { MirrorTable } from "./table.ts";
import { seenUntil, seenUntilWithin, statusRank } from "./version.ts";

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
