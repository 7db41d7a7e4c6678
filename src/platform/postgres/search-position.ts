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
