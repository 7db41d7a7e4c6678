import { createHeap } from "./heap.ts";

/** Several sorted walks as one. */
export function* mergeSorted<R>(
  walks: readonly IterableIterator<R>[],
  compare: (a: R, b: R) => number,
): Iterable<R> {
  const [only] = walks;
  if (only !== undefined && walks.length === 1) {
    yield* only;
    return;
  }
  const heads = createHeap<{ walk: IterableIterator<R>; row: R }>(
    (a, b) => compare(a.row, b.row) < 0,
  );
  for (const walk of walks) {
    const first = walk.next();
    if (first.done !== true) heads.push({ walk, row: first.value });
  }
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    yield head.row;
    const following = head.walk.next();
    if (following.done !== true) heads.push({ walk: head.walk, row: following.value });
  }
}
