import type { Knex } from "knex";
import type { Clock } from "../platform/clock.ts";
import { sqlArray } from "../platform/postgres/values.ts";

/** The numbers of events as they come, each once, and none is left out. */
export interface Arrivals {
  /** Whether it was there when the watch began. */
  wasThere(seq: number): boolean;
  /** Numbers that were committed since the last call, rising; at most `atOnce` of them. May be called again after it threw. */
  next(): Promise<number[]>;
}

/**
 * A number is given out before its event is committed, so that 11 may be there before 10. A number that was passed over
 * is asked for so long: many times what an append may take before the server gives it up (runtime.ts).
 */
const gapWatchMs = 60_000;
/** How far back numbers may still be on their way when the watch begins: more than a minute of a busy receiver brings. */
const gapsLookedFor = 20_000;
const atOnce = 1_000;

/** Begins to watch: what is there now is not given back any more. */
export async function watchArrivals(db: Knex, clock: Clock): Promise<Arrivals> {
  const before = await newestSeqs(db, gapsLookedFor);
  /** When a number that was passed over was noticed, in milliseconds. */
  const gaps = new Map<number, number>();
  let newest = before.at(-1) ?? 0;
  noteGaps(before.length < gapsLookedFor ? 0 : (before[0] ?? 0) - 1, before);
  const [first, missing] = [newest, new Set(gaps.keys())];

  /** Notes what is missing between `after` and the last of `found`, which are rising. */
  function noteGaps(after: number, found: readonly number[]): void {
    const nowMs = clock.now().getTime();
    let last = after;
    for (const seq of found) {
      for (let gap = Math.max(last + 1, seq - gapsLookedFor); gap < seq; gap++)
        gaps.set(gap, nowMs);
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
      // Only what was asked for after its time is given up: the database may have been away meanwhile.
      for (const [seq, noticedMs] of gaps) {
        if (askedAtMs - noticedMs > gapWatchMs) gaps.delete(seq);
      }
      return found;
    },
  };
}

/** Rising. */
async function newestSeqs(db: Knex, limit: number): Promise<number[]> {
  const seqs = await db("inbox.receipts")
    .orderBy("seq", "desc")
    .limit(limit)
    .pluck<string[]>("seq");
  return seqs.map(Number).reverse();
}

/** Of the missing ones those that are there now, and the next after the newest. One statement. */
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
