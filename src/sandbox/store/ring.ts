/** The last `capacity` entries of a stream. */
export interface Ring<T> {
  /** How many were ever pushed. */
  readonly total: number;
  push(entry: T): void;
  /** Oldest first. */
  toArray(): T[];
}

export function createRing<T>(capacity: number): Ring<T> {
  const entries: T[] = [];
  let total = 0;
  return {
    get total() {
      return total;
    },
    push(entry) {
      if (entries.length < capacity) entries.push(entry);
      else entries[total % capacity] = entry;
      total += 1;
    },
    toArray() {
      const oldest = entries.length < capacity ? 0 : total % capacity;
      return [...entries.slice(oldest), ...entries.slice(0, oldest)];
    },
  };
}
