import { type Change, positionAt, readChanges, readableUntil } from "../../../core/mirror/changes/read-changes.ts";
import { keepPosition } from "../consumers.ts";
import { consumerOf } from "./feed-place.ts";
import type { Source } from "./recipient.ts";
import type { ClaimedRun } from "./runs.ts";
import type { Knex } from "knex";
import type { z } from "zod";
import { customerSchema } from "../../../core/contract/resources/customers.ts";
import { orderSchema } from "../../../core/contract/resources/orders.ts";
import { subscriptionSchema } from "../../../core/contract/resources/subscriptions.ts";
import { transactionSchema } from "../../../core/contract/resources/transactions.ts";
import { readStates } from "../../../core/mirror/read-states.ts";
import type { Objects } from "./define-handler.ts";

export interface FeedSourceOptions {
  /** The recipient's name, under which the feed keeps its position. */
  name: string;
  /** Null: all. */
  kinds: readonly string[] | null;
  /** Whether imported changes are included. */
  includeImport: boolean;
}

/** Changes of the feed, of some kinds. */
export const feedSource = ({ name, kinds, includeImport }: FeedSourceOptions): Source => ({
  name: "changes",
  readableUntil,
  positionAt,
  async read(db, { after, limit, startsAt }) {
    const { changes, ...page } = await readChanges(db, {
      after,
      limit,
      ...(kinds === null ? {} : { kinds }),
    });
    const rows = changes
      .filter(({ cause }) => includeImport || cause !== "import")
      .filter(({ recordedAt }) => startsAt === null || recordedAt >= startsAt)
      .map((change) => {
        const { seq, resource, id, kind } = change;
        return { seq, resource, id, kind, item: change };
      });
    return { rows, ...page };
  },
  keepPosition: (trx, position) => keepPosition(trx, { name: consumerOf(name), position }),
});

type StoredChange = Omit<Change, "recordedAt" | "state"> & {
  recordedAt: string;
  state: { group: string; at: string; hash: string } | null;
};

/** The change of a run that was made from the feed. */
export function changeOf({ item }: Pick<ClaimedRun, "item">): Change {
  const { recordedAt, state, ...change } = item as StoredChange;
  return {
    ...change,
    recordedAt: new Date(recordedAt),
    state: state === null ? null : { ...state, at: new Date(state.at) },
  };
}

/** The event that caused the change of a run that was made from the feed; null where it was no event. */
export function eventSeqOf({ item }: Pick<ClaimedRun, "item">): number | null {
  const [, seq] = /^event:(\d{1,15})$/.exec((item as StoredChange).cause) ?? [];
  return seq === undefined ? null : Number(seq);
}

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
