import type { Knex } from "knex";

/** Who erased whom, when, why, and how much that was. Rows of this table never change. */
export interface ErasureEntry {
  customerId: string;
  by: string;
  reason: string | null;
  counts: Readonly<Record<string, number>>;
}

export async function logErasure(db: Knex, entry: ErasureEntry): Promise<void> {
  await db("mirror.erasure_log").insert({
    customer_id: entry.customerId,
    erased_by: entry.by,
    reason: entry.reason,
    counts: JSON.stringify(entry.counts),
  });
}
