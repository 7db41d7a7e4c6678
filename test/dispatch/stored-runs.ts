import type { Knex } from "knex";

interface StoredRun {
  handler?: string;
  seq: number;
  id: string;
  state?: "waiting" | "dead";
  isFirst?: boolean;
  error?: string;
  failedAt?: Date;
  dueAt?: Date;
  claimedUntil?: Date;
}

/** Writes a run, of the handler "receipts" if no other is named, as it stands after planning, claims and failures. */
export async function storeRun(
  db: Knex,
  { handler = "receipts", seq, id, state, isFirst = true, error, failedAt, dueAt, claimedUntil }: StoredRun,
): Promise<void> {
  await db("dispatch.runs").insert({
    handler,
    resource: "order",
    kind: "order.paid",
    change: "{}",
    seq,
    id,
    is_first: isFirst,
    ...(state === "dead" ? { state, attempts: 12, failed_at: new Date() } : {}),
    ...(failedAt === undefined ? {} : { failed_at: failedAt }),
    ...(error === undefined ? {} : { error }),
    ...(dueAt === undefined ? {} : { due_at: dueAt }),
    ...(claimedUntil === undefined ? {} : { claimed_until: claimedUntil }),
  });
}
