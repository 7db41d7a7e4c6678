import type { Knex } from "knex";

/**
 * A slice whose walk did not show objects that are there proves nothing about what the mirror does not know either:
 * it counts as failed. One statement; gives back how many slices.
 */
export async function failSlicesThatLost(db: Knex, run: number): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.coverage c set state = 'failed',
       note = format('%s objects of these bounds exist and were not listed', lost.n)
     from (
       select slice, count(*) as n from reconcile.doubts
       where run = ? and outcome = 'lost_in_list' and slice is not null group by slice
     ) lost
     where c.run = ? and c.slice = lost.slice`,
    [run, run],
  );
  return rowCount;
}
