import type { Knex } from "knex";

/** The sequence numbers of events as they are committed, each once and without omissions. */
export interface Arrivals {
  wasThere(seq: number): boolean;
  /** The next numbers, ascending, at most `atOnce`. May be called again after it threw. */
  next(): Promise<number[]>;
}

const atOnce = 1_000;

/**
 * The number up to which the inbox is complete: all earlier numbers are committed, or never will be. Numbers commit in
 * another order than they are given. One statement, on the primary, at READ COMMITTED.
 */
export async function readableUntil(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ until: string }] }>("select inbox.readable_until() as until");
  return Number(rows[0].until);
}

/** Starts a watch. Events that are already stored are not returned. */
export async function watchArrivals(db: Knex): Promise<Arrivals> {
  const first = await readableUntil(db);
  let position = first;
  return {
    wasThere: (seq) => seq <= first,
    async next() {
      const until = await readableUntil(db);
      if (until <= position) return [];
      const found = await db("inbox.receipts")
        .where("seq", ">", position)
        .where("seq", "<=", until)
        .orderBy("seq")
        .limit(atOnce)
        .pluck<string[]>("seq");
      const seqs = found.map(Number);
      position = seqs.length === atOnce ? (seqs.at(-1) ?? until) : until;
      return seqs;
    },
  };
}
