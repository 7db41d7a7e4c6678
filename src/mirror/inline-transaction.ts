import { z } from "zod";
import { isPlausibleAmount } from "../service/resources/transaction.ts";
import { signedMinorUnits, wireId } from "../service/resources/wire-types.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { canonicalContent } from "./canonical.ts";
import {
  cardColumns,
  codeColumn,
  idColumn,
  integerColumn,
  moneyColumn,
  textColumn,
  timeColumn,
} from "./columns.ts";
import type { Readable } from "./decode.ts";
import { groupState } from "./group-state.ts";
import type { GroupState, ObjectKey, Observation } from "./observation.ts";
import { isSettledBy, statusRank } from "./version.ts";

type WireObject = Readonly<Record<string, unknown>>;

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
