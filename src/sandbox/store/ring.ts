/** The last `capacity` entries of a stream. */
export interface Ring<T> {
  /** How many were ever pushed. */
  readonly total: number;
  push(entry: T): void;
  /** Oldest first. */
  toArray(): T[];
  /** Takes up a stream of which only the latest entries are known. */
  restore(latest: readonly T[], total: number): void;
}

export function createRing<T>(capacity: number): Ring<T> {
  const entries: T[] = [];
  let total = 0;
  /** Of a full ring: where its oldest entry stands. */
  let oldest = 0;
  return {
    get total() {
      return total;
    },
    push(entry) {
      total += 1;
      if (entries.length < capacity) {
        entries.push(entry);
        return;
      }
      entries[oldest] = entry;
      oldest = (oldest + 1) % capacity;
    },
    toArray: () => [...entries.slice(oldest), ...entries.slice(0, oldest)],
    restore(latest, knownTotal) {
      entries.splice(0, Infinity, ...latest.slice(-capacity));
      oldest = 0;
      total = knownTotal;
    },
  };
}
