import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import type { EventState } from "./claim.ts";

/** How the work on one event ended. */
export interface Settlement {
  seq: number;
  state: Exclude<EventState, "received" | "failed">;
  reason: string | null;
  resourceType: string | null;
  resourceId: string | null;
}

/** Marks events as done, all in one statement. Belongs into the transaction that changed the mirror. */
export async function settleEvents(
  trx: Knex.Transaction,
  settlements: readonly Settlement[],
): Promise<void> {
  if (settlements.length === 0) return;
  await trx.raw(
    `update inbox.progress p
     set state = s.state, reason = s.reason, resource_type = s.resource_type, resource_id = s.resource_id,
         attempts = p.attempts + 1, next_attempt_at = null, settled_at = now(),
         object_known_at = coalesce(p.object_known_at, case when s.resource_id is not null then now() end)
     from unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[])
       as s(seq, state, reason, resource_type, resource_id)
     where p.seq = s.seq`,
    [
      sqlArray(settlements.map(({ seq }) => seq)),
      sqlArray(settlements.map(({ state }) => state)),
      sqlArray(settlements.map(({ reason }) => reason)),
      sqlArray(settlements.map(({ resourceType }) => resourceType)),
      sqlArray(settlements.map(({ resourceId }) => resourceId)),
    ],
  );
}

/**
 * Puts one event off after its `attempt`th failure: tried again after `delayMs`, or dead when that is null. False where
 * nothing was left to put off: another worker has settled the event, or has put it off after the same attempt.
 */
export async function postponeEvent(
  db: Knex,
  failed: { seq: number; attempt: number; reason: string; delayMs: number | null },
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.progress
     set state = case when :delayMs::float8 is null then 'dead' else 'failed' end,
         attempts = :attempt, reason = :reason,
         settled_at = case when :delayMs::float8 is null then now() end,
         next_attempt_at = now() + make_interval(secs => :delayMs::float8 / 1000), relayed_at = null
     where seq = :seq and state in ('received', 'failed') and attempts = :attempt - 1`,
    failed,
  );
  return rowCount > 0;
}
