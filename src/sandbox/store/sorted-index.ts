/** Entries a chunk holds before it is split: small enough to move in a microsecond, large enough to keep few chunks. */
const chunkLimit = 512;

/**
 * A sorted sequence in chunks. Insertion and removal cost a binary search and the move of one chunk,
 * whatever the size and wherever they happen, so that a stopped clock (all ids random within one
 * instant) is no slower than a running one, where everything is appended.
 *
 * Plain data with functions beside it: there is one for every customer that ordered.
 */
export interface SortedIndex<T> {
  readonly compare: (a: T, b: T) => number;
  readonly chunks: T[][];
  size: number;
}

/** `compare` must be a total order: two different entries never compare equal. */
export function createSortedIndex<T>(compare: (a: T, b: T) => number): SortedIndex<T> {
  return { compare, chunks: [], size: 0 };
}

export function insertSorted<T>(index: SortedIndex<T>, entry: T): void {
  const { chunks, compare } = index;
  index.size += 1;
  const newest = chunks.at(-1);
  if (newest === undefined || compare(newest.at(-1) as T, entry) < 0) {
    // Appending starts a new chunk instead of splitting: chunks of a growing table stay full.
    if (newest === undefined || newest.length >= chunkLimit) chunks.push([entry]);
    else newest.push(entry);
    return;
  }
  const isBeyond = (other: T) => compare(other, entry) > 0;
  const at = firstChunkReached(chunks, isBeyond);
  const chunk = chunks[at] as T[];
  chunk.splice(firstReached(chunk, isBeyond), 0, entry);
  if (chunk.length > chunkLimit) chunks.splice(at + 1, 0, chunk.splice(chunkLimit >>> 1));
}

/** Removes the entry that compares equal. False when there is none. */
export function removeSorted<T>(index: SortedIndex<T>, entry: T): boolean {
  const { chunks, compare } = index;
  const isReached = (other: T) => compare(other, entry) >= 0;
  const at = firstChunkReached(chunks, isReached);
  const chunk = chunks[at];
  if (chunk === undefined) return false;
  const offset = firstReached(chunk, isReached);
  const found = chunk[offset];
  if (found === undefined || compare(found, entry) !== 0) return false;
  if (offset === chunk.length - 1) chunk.pop();
  else chunk.splice(offset, 1);
  if (chunk.length === 0) chunks.splice(at, 1);
  index.size -= 1;
  return true;
}

/** Upwards from the first entry that `isAtOrAfter`; the predicate must be false, then true, along the order. */
export function* ascending<T>(
  { chunks }: SortedIndex<T>,
  isAtOrAfter: (entry: T) => boolean = () => true,
): IterableIterator<T> {
  const first = firstChunkReached(chunks, isAtOrAfter);
  for (let at = first; at < chunks.length; at++) {
    const chunk = chunks[at] as T[];
    for (let i = at === first ? firstReached(chunk, isAtOrAfter) : 0; i < chunk.length; i++) {
      yield chunk[i] as T;
    }
  }
}

/** Downwards from the last entry that `isAtOrBefore`; the predicate must be true, then false, along the order. */
export function* descending<T>(
  { chunks }: SortedIndex<T>,
  isAtOrBefore: (entry: T) => boolean = () => true,
): IterableIterator<T> {
  const isPast = (entry: T) => !isAtOrBefore(entry);
  const last = Math.min(firstChunkReached(chunks, isPast), chunks.length - 1);
  for (let at = last; at >= 0; at--) {
    const chunk = chunks[at] as T[];
    for (let i = (at === last ? firstReached(chunk, isPast) : chunk.length) - 1; i >= 0; i--) {
      yield chunk[i] as T;
    }
  }
}

/** How many entries at the front of a sorted array are not yet `reached`. */
function firstReached<T>(entries: readonly T[], reached: (entry: T) => boolean): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(entries[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first chunk whose last entry is `reached`; the number of chunks when none is. */
function firstChunkReached<T>(chunks: readonly T[][], reached: (entry: T) => boolean): number {
  let low = 0;
  let high = chunks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached((chunks[middle] as T[]).at(-1) as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
