import type { Knex } from "knex";
import { isAbsent } from "../mirror/customer.ts";
import type { Resource } from "../mirror/observation.ts";
import { mirrorTableOf } from "./mirror-tables.ts";

/** A clock of the service may be ahead of the one that dates its answers. */
const aheadMs = 60 * 60_000;

/**
 * Doubts the rows of the mirror that the lists should have given a time of creation and did not (they last changed
 * before T0, so they are no news), and those created in the future: no slice is held against either. A customer whose
 * absence is known is left out. One statement; idempotent; gives back how many there were.
 */
export async function doubtOutOfTime(
  db: Knex,
  { run, t0, noticedAt }: { run: number; t0: Date; noticedAt: Date },
  resource: Resource,
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into reconcile.doubts (run, resource, id, why, due_at, noticed_at)
     select :run, :resource, m.id, 'out_of_time', :noticedAt, :noticedAt from mirror.${mirrorTableOf[resource]} m
     where (m.created_at is null and coalesce(m.source_updated_at < :t0, true) or m.created_at > :until)
       ${resource === "customer" ? `and not (${isAbsent((column) => `m.${column}`)})` : ""}
     on conflict do nothing`,
    { run, resource, t0, noticedAt, until: new Date(noticedAt.getTime() + aheadMs) },
  );
  return rowCount;
}
