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
  chunks: T[][];
  /** What each entry measures, and beside each chunk within which bounds its entries do. Measures of an entry never change. */
  readonly measures: readonly ((entry: T) => number)[];
  readonly zones: Zone[];
  size: number;
}

/** Least and greatest value of each measure in a chunk, at least as wide as they are: removal leaves it. */
export type Zone = { least: number; greatest: number }[];

/** `compare` must be a total order: two different entries never compare equal. */
export function createSortedIndex<T>(
  compare: (a: T, b: T) => number,
  measures: SortedIndex<T>["measures"] = nothing,
): SortedIndex<T> {
  const zones = measures.length === 0 ? nothing : [];
  return { compare, chunks: [], measures, zones, size: 0 };
}

/** There is an index for every customer: what they do not need they share. Never written to. */
const nothing: never[] = [];

/** An array up to this length is made as long as its entries: one that grows by `push` is given room for 16 more. */
const exactLimit = 16;

export function insertSorted<T>(index: SortedIndex<T>, entry: T): void {
  const { chunks, zones, compare } = index;
  index.size += 1;
  const newest = chunks.at(-1);
  if (newest === undefined || compare(newest.at(-1) as T, entry) < 0) {
    // Appending starts a new chunk instead of splitting: chunks of a growing table stay full.
    if (newest === undefined) index.chunks = [[entry]];
    else if (newest.length >= chunkLimit) chunks.push([entry]);
    else if (newest.length < exactLimit) chunks[chunks.length - 1] = newest.concat([entry]);
    else newest.push(entry);
    widen(index, index.chunks.length - 1, entry);
    return;
  }
  const isBeyond = (other: T) => compare(other, entry) > 0;
  const at = firstChunkReached(chunks, isBeyond);
  const chunk = chunks[at] as T[];
  chunk.splice(firstReached(chunk, isBeyond), 0, entry);
  widen(index, at, entry);
  if (chunk.length <= chunkLimit) return;
  const half = chunk.splice(chunkLimit >>> 1);
  chunks.splice(at + 1, 0, half);
  if (index.measures.length === 0) return;
  zones.splice(at, 1, [], []);
  for (const kept of chunk) widen(index, at, kept);
  for (const moved of half) widen(index, at + 1, moved);
}

function widen<T>({ measures, zones }: SortedIndex<T>, at: number, entry: T): void {
  if (measures.length === 0) return;
  const zone = (zones[at] ??= []);
  for (let i = 0; i < measures.length; i++) {
    const value = (measures[i] as (entry: T) => number)(entry);
    const bounds = zone[i];
    if (bounds === undefined) zone[i] = { least: value, greatest: value };
    else if (value < bounds.least) bounds.least = value;
    else if (value > bounds.greatest) bounds.greatest = value;
  }
}

/** How many entries come before the first that is `reached`. */
export function countBefore<T>({ chunks }: SortedIndex<T>, reached: (entry: T) => boolean): number {
  const at = firstChunkReached(chunks, reached);
  let count = firstReached(chunks[at] ?? [], reached);
  for (let i = 0; i < at; i++) count += (chunks[i] as T[]).length;
  return count;
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
  if (chunk.length === 0) {
    chunks.splice(at, 1);
    if (index.measures.length > 0) index.zones.splice(at, 1);
  }
  index.size -= 1;
  return true;
}

/**
 * Upwards from the first entry that `isAtOrAfter`; the predicate must be false, then true, along the order. Chunks whose zone
 * `mayHold` rules out are skipped whole.
 */
export function* ascending<T>(
  { chunks, zones }: SortedIndex<T>,
  isAtOrAfter: (entry: T) => boolean = () => true,
  mayHold: (zone: Zone) => boolean = () => true,
): IterableIterator<T> {
  const first = firstChunkReached(chunks, isAtOrAfter);
  for (let at = first; at < chunks.length; at++) {
    if (!mayHold(zones[at] ?? [])) continue;
    const chunk = chunks[at] as T[];
    for (let i = at === first ? firstReached(chunk, isAtOrAfter) : 0; i < chunk.length; i++) {
      yield chunk[i] as T;
    }
  }
}

/** Downwards from the last entry that `isAtOrBefore`; the predicate must be true, then false, along the order. */
export function* descending<T>(
  { chunks, zones }: SortedIndex<T>,
  isAtOrBefore: (entry: T) => boolean = () => true,
  mayHold: (zone: Zone) => boolean = () => true,
): IterableIterator<T> {
  const isPast = (entry: T) => !isAtOrBefore(entry);
  const last = Math.min(firstChunkReached(chunks, isPast), chunks.length - 1);
  for (let at = last; at >= 0; at--) {
    if (!mayHold(zones[at] ?? [])) continue;
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

/** A record's fixed place in every index; `value` is its newest state. */
export interface Row<T> {
  readonly id: string;
  readonly createdAtMs: number;
  /** Among which rows it was created (`Spans`). */
  readonly span: number;
  /** The how-manieth of its table. */
  readonly number: number;
  value: T;
}

export type RowIndex<T> = SortedIndex<Row<T>>;

/** Order of creation, also of what was created within one millisecond: the order is total. */
export function compareByCreation<T>(a: Row<T>, b: Row<T>): number {
  return a.createdAtMs - b.createdAtMs || a.number - b.number;
}
