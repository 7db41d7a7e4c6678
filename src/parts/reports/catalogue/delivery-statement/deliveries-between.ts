import type { Knex } from "knex";
import { readingTransaction } from "../../base/read-report.ts";

/**
 * The delivery statement's sums over a span of time, from the mirror's present state. Takes seconds on a large
 * database: use a pool with a statement time-out. Opens its own transaction.
 */
export const deliveriesBetween = (
  db: Knex,
  { from, until, timeZone }: { from: Date; until: Date; timeZone: string },
): Promise<{ announced: number; received: number; inTime: number; missed: number }> =>
  readingTransaction(db, async (trx) => {
    const { rows } = await trx.raw<{
      rows: [{ announced: string; received: string; in_time: string; missed: string }];
    }>(
      `select coalesce(sum(announced), 0) as announced, coalesce(sum(received), 0) as received,
              coalesce(sum(in_time), 0) as in_time, coalesce(sum(missed), 0) as missed
       from reports.delivery_statement(?, ?, ?)`,
      [from, until, timeZone],
    );
    const [{ announced, received, in_time: inTime, missed }] = rows;
    return {
      announced: Number(announced),
      received: Number(received),
      inTime: Number(inTime),
      missed: Number(missed),
    };
  });
