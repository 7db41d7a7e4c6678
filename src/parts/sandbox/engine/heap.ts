/** A binary heap: the least entry first. `isBefore` must be a strict order. */
export interface Heap<T> {
  readonly size: number;
  push(entry: T): void;
  peek(): T | undefined;
  pop(): T | undefined;
  /** All entries, in no particular order. */
  entries(): T[];
}

export function createHeap<T>(isBefore: (a: T, b: T) => boolean): Heap<T> {
  const entries: T[] = [];

  function siftUp(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(entries[at] as T, entries[parent] as T)) return;
      swap(at, parent);
      at = parent;
    }
  }

  function siftDown(): void {
    let at = 0;
    for (;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < entries.length && isBefore(entries[child] as T, entries[least] as T)) {
          least = child;
        }
      }
      if (least === at) return;
      swap(at, least);
      at = least;
    }
  }

  function swap(a: number, b: number): void {
    [entries[a], entries[b]] = [entries[b] as T, entries[a] as T];
  }

  return {
    get size() {
      return entries.length;
    },
    push(entry) {
      entries.push(entry);
      siftUp(entries.length - 1);
    },
    peek: () => entries[0],
    entries: () => [...entries],
    pop() {
      const first = entries[0];
      const last = entries.pop();
      if (entries.length > 0 && last !== undefined) {
        entries[0] = last;
        siftDown();
      }
      return first;
    },
  };
}
