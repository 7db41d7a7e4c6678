import type { Knex } from "knex";
import type { z } from "zod";
import { customerSchema } from "../../../core/contract/resources/customers.ts";
import { orderSchema } from "../../../core/contract/resources/orders.ts";
import { subscriptionSchema } from "../../../core/contract/resources/subscriptions.ts";
import { transactionSchema } from "../../../core/contract/resources/transactions.ts";
import type { Change } from "../../../core/mirror/changes/read-changes.ts";
import { readStates } from "../../../core/mirror/read-states.ts";
import type { Objects } from "./define-handler.ts";

/** An object as handlers get it, under the name of its resource. */
export type HandledObject = Readonly<Record<string, unknown>>;

/**
 * The objects of changes, each as the change left it, in the order of the changes. The contract's fields that the
 * service left out are null. Null in place of an object that the mirror has not seen itself yet, such as the order of a
 * refund that came first.
 */
export async function readObjects(db: Knex, changes: readonly Change[]): Promise<(HandledObject | null)[]> {
  const contents = await readStates(db, changes);
  return contents.map((content, n) =>
    content === null ? null : { ...nullFields[changes[n]?.resource ?? ""], ...content },
  );
}

/** The fields that may be null and are no part of what `Objects` promises are left out by `without`. */
function nullsOf(schema: z.ZodObject, without: readonly string[] = []): HandledObject {
  const names = Object.entries(schema.shape).flatMap(([name, field]) =>
    field.safeParse(null).success && !without.includes(name) ? [name] : [],
  );
  return Object.fromEntries(names.map((name) => [name, null]));
}

const nullFields: Readonly<Record<string, HandledObject>> = {
  order: nullsOf(orderSchema, ["transactions"]),
  subscription: nullsOf(subscriptionSchema, ["cycles", "failure_reason", "attempt_count", "next_retry_at"]),
  customer: nullsOf(customerSchema),
  transaction: nullsOf(transactionSchema),
} satisfies Record<keyof Objects, HandledObject>;
