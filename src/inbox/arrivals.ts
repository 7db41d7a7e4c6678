import type { Knex } from "knex";
import type { Clock } from "../platform/clock.ts";
import { sqlArray } from "../platform/postgres/values.ts";

/** The sequence numbers of events as they are committed, each once and without omissions. */
export interface Arrivals {
  /** Whether the event was stored when the watch began. */
  wasThere(seq: number): boolean;
  /** Numbers committed since the last call, ascending, at most `atOnce`. May be called again after it threw. */
  next(): Promise<number[]>;
}

/**
 * How long a skipped number is still looked for. A number is assigned before its event is committed, so 11 may appear
 * before 10. This is many times longer than the server lets an append take (main/runtime.ts).
 */
const gapWatchMs = 60_000;
/**
 * How many of the newest numbers may have uncommitted gaps when the watch begins, and how many on either side of a jump
 * to the next partition: more than a busy receiver stores in a minute.
 */
const gapsLookedFor = 20_000;
const atOnce = 1_000;

/** Starts a watch. Events that are already stored are not returned. */
export async function watchArrivals(db: Knex, clock: Clock): Promise<Arrivals> {
  const before = await newestSeqs(db, gapsLookedFor);
  /** When each skipped number was noticed, in milliseconds. */
  const gaps = new Map<number, number>();
  let newest = before.at(-1) ?? 0;
  noteGaps(before.length < gapsLookedFor ? 0 : (before[0] ?? 0) - 1, before);
  const [first, missing] = [newest, new Set(gaps.keys())];

  /** Notes the numbers missing between `after` and the last of `found`, which are ascending. */
  function noteGaps(after: number, found: readonly number[]): void {
    const nowMs = clock.now().getTime();
    let last = after;
    for (const seq of found) {
      for (let gap = last + 1; gap < seq; gap++) {
        if (gap === last + gapsLookedFor) gap = Math.max(gap, seq - gapsLookedFor);
        gaps.set(gap, nowMs);
      }
      last = seq;
    }
  }

  return {
    wasThere: (seq) => seq <= first && !missing.has(seq),
    async next() {
      const askedAtMs = clock.now().getTime();
      const found = await seqsAmong(db, [...gaps.keys()], newest);
      const later = found.filter((seq) => seq > newest);
      noteGaps(newest, later);
      newest = later.at(-1) ?? newest;
      for (const seq of found) gaps.delete(seq);
      // Drops a gap only after a query that was made past its time: the database may have been down meanwhile.
      for (const [seq, noticedMs] of gaps) {
        if (askedAtMs - noticedMs > gapWatchMs) gaps.delete(seq);
      }
      return found;
    },
  };
}

/** Ascending. */
async function newestSeqs(db: Knex, limit: number): Promise<number[]> {
  const seqs = await db("inbox.receipts")
    .orderBy("seq", "desc")
    .limit(limit)
    .pluck<string[]>("seq");
  return seqs.map(Number).reverse();
}

/** The missing numbers that are now stored, and the next ones after the newest. One statement. */
async function seqsAmong(db: Knex, missing: readonly number[], after: number): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `select seq from inbox.receipts where seq = any(?::bigint[])
     union all
     (select seq from inbox.receipts where seq > ? order by seq limit ?)
     order by seq`,
    [sqlArray(missing), after, atOnce],
  );
  return rows.map(({ seq }) => Number(seq));
}
