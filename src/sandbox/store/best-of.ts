/**
 * The first `count` wanted rows after a cursor, in order, of rows in any order. Costs a comparison a row once `count` were
 * found, instead of sorting them all.
 */
export function bestOf<R>(
  rows: Iterable<R>,
  isWanted: (row: R) => boolean,
  compare: (a: R, b: R) => number,
  count: number,
  cursor: R | undefined,
): R[] {
  const best: R[] = [];
  for (const row of rows) {
    const last = best[count - 1];
    if (last !== undefined && compare(row, last) >= 0) continue;
    if (cursor !== undefined && compare(row, cursor) <= 0) continue;
    if (!isWanted(row)) continue;
    if (last !== undefined) best.pop();
    best.splice(placeOf(best, row, compare), 0, row);
  }
  return best;
}

function placeOf<R>(sorted: readonly R[], row: R, compare: (a: R, b: R) => number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(sorted[middle] as R, row) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}
