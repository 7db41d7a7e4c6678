import type { Knex } from "knex";
import { rereadClasses } from "./findings.ts";
import type { Sighting } from "./findings.ts";

/**
 * Heals the findings of drift that a run did not see again though it read where they must have shown: in a closed
 * slice that was read to its end, or by id. Not those of rows edited by hand (`checkRows`): no read shows their fault.
 * For the end of a run. One statement; gives back how many.
 */
export async function healCoveredFindings(
  db: Knex,
  { run, seenAt }: Sighting & { run: number },
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.findings f set state = 'healed', healed_at = :seenAt, run = :run
     from (
       select g.id, coalesce(o.created_at, t.created_at, s.created_at, c.created_at) as created_at
       from reconcile.findings g
       left join mirror.orders o on g.resource = 'order' and o.id = g.object_id
       left join mirror.transactions t on g.resource = 'transaction' and t.id = g.object_id
       left join mirror.subscriptions s on g.resource = 'subscription' and s.id = g.object_id
       left join mirror.customers c on g.resource = 'customer' and c.id = g.object_id
       where g.state <> 'healed' and g.run is distinct from :run and g.class = any(:classes)
     ) known
     where f.id = known.id and (
       exists (
         select from reconcile.coverage c
         where c.run = :run and c.state = 'complete' and c.is_closed and c.resource = f.resource
           and (c.created_from is null or c.created_from <= known.created_at)
           -- What the mirror does not have can stand anywhere in the list.
           and (c.created_before is null or c.created_before > coalesce(known.created_at, '-infinity')))
       or exists (
         select from reconcile.doubts d
         where d.run = :run and d.resource = f.resource and d.id = f.object_id and d.outcome = 'equal'))`,
    { run, seenAt, classes: [...rereadClasses] },
  );
  return rowCount;
}
