import { randomUUID } from "node:crypto";
import type { Knex } from "knex";

const listed = ["customer", "order", "transaction", "subscription"];

/** A finished run that read everything created before a time. */
export async function coverAll(
  db: Knex,
  before: string,
  {
    from = null,
    resources = listed,
    endedAgo = "2 hours",
  }: { from?: string | null; resources?: readonly string[]; endedAgo?: string } = {},
): Promise<number> {
  const [run] = await db("reconcile.runs")
    .insert({
      run_key: `test ${randomUUID()}`,
      kind: "full",
      t0: before,
      state: "complete",
      finished_at: db.raw("now() - ?::interval", [endedAgo]),
    })
    .returning<{ id: string }[]>("id");
  await db("reconcile.coverage").insert(
    resources.map((resource, slice) => ({
      run: run?.id,
      slice,
      step: "all",
      resource,
      path: `/${resource}s`,
      filter: "{}",
      created_from: from,
      created_before: before,
      is_closed: true,
      reason: "test",
      state: "complete",
      pages: 1,
      read_at: db.raw("now() - ?::interval", [endedAgo]),
    })),
  );
  return Number(run?.id);
}
