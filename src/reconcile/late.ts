import type { Knex } from "knex";

/**
 * Corrects the cause of findings whose webhook was not missed but came after all, later than the grace: only a later
 * run can know. One statement; gives back how many.
 */
export async function correctLateCauses(db: Knex, since: Date): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.findings f set cause = 'late',
       evidence = f.evidence || jsonb_build_object('late_event', late.event_id, 'late_received_at', late.received_at)
     from (
       select distinct on (g.id) g.id, e.event_id, e.received_at
       from reconcile.findings g join inbox.events e on e.resource_id = g.object_id
       where g.cause = 'missed_webhook' and g.last_seen >= ?
         and e.event_created_at = date_trunc('milliseconds', (g.evidence->>'changed_at')::timestamptz)
       order by g.id, e.seq
     ) late
     where f.id = late.id`,
    [since],
  );
  return rowCount;
}
