/** Several sorted walks as one. They are few: one for each value of a filter. */
export function* mergeSorted<R>(
  walks: readonly IterableIterator<R>[],
  compare: (a: R, b: R) => number,
): Iterable<R> {
  const [only] = walks;
  if (only === undefined) return;
  if (walks.length === 1) {
    yield* only;
    return;
  }
  const heads = walks.flatMap((walk) => {
    const first = walk.next();
    return first.done === true ? [] : [{ walk, row: first.value }];
  });
  while (heads.length > 0) {
    let next = 0;
    for (let i = 1; i < heads.length; i++) {
      if (compare((heads[i] as { row: R }).row, (heads[next] as { row: R }).row) < 0) next = i;
    }
    const head = heads[next] as (typeof heads)[number];
    yield head.row;
    const following = head.walk.next();
    if (following.done === true) heads.splice(next, 1);
    else head.row = following.value;
  }
}
