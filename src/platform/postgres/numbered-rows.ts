/** A sequence whose numbers a reader follows. */
export interface NumberTurns {
  sequence: string;
  /**
   * Distinguishes its locks from all others: the upper 16 bits of their keys. The function that reads them has it, too.
   */
  lockClass: number;
}

/**
 * SQL of a value by which a writer announces that its numbers are still to be committed
 * (mirror/changes/readable-until.sql). The statement must evaluate it before it takes its first number. Locks no other
 * session out, and ends with the transaction.
 */
export const takeTurn = ({ sequence, lockClass }: NumberTurns): string =>
  `pg_advisory_xact_lock_shared((${lockClass}::bigint << 48) | coalesce(pg_sequence_last_value('${sequence}'), 0))`;

/** A numbered row with its date. */
interface Dated {
  seq: number;
  at: Date;
}

/**
 * A position before every row that is dated at that time or later, among rows whose dates grow nearly as their numbers
 * do. Searches by halves, some 40 reads, so that no index by date is needed.
 *
 * @param until the last number
 * @param firstAfter the first row with a higher number; null where there is none
 */
export async function searchPosition(
  until: number,
  time: Date,
  firstAfter: (seq: number) => Promise<Dated | null>,
): Promise<number> {
  let [low, high] = [0, until];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const next = await firstAfter(middle);
    if (next === null || next.at >= time) high = middle;
    else low = next.seq;
  }
  return low;
}
