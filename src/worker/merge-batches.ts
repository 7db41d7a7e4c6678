interface Waiting {
  seqs: readonly number[];
  resolve(): void;
  reject(error: unknown): void;
}

export interface MergeLimits {
  /** Batches at work at the same time. */
  atOnce: number;
  /** A merged batch is closed once it has so many. */
  maxSeqs: number;
}

/**
 * Makes one batch of all that is handed in while others are at work, as the inbox does with its INSERTs: a worker
 * that keeps up applies each job at once, one that has fallen behind applies many in one transaction. Each call
 * ends as its batch does.
 */
export function mergeBatches(
  apply: (seqs: readonly number[]) => Promise<void>,
  { atOnce, maxSeqs }: MergeLimits,
): (seqs: readonly number[]) => Promise<void> {
  let waiting: Waiting[] = [];
  let working = 0;

  function takeBatch(): Waiting[] {
    let count = 0;
    let seqs = 0;
    for (const each of waiting) {
      if (count > 0 && seqs + each.seqs.length > maxSeqs) break;
      seqs += each.seqs.length;
      count++;
    }
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    return batch;
  }

  async function work(): Promise<void> {
    working++;
    while (waiting.length > 0) {
      const batch = takeBatch();
      try {
        await apply([...new Set(batch.flatMap(({ seqs }) => seqs))]);
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    working--;
  }

  return (seqs) =>
    new Promise((resolve, reject) => {
      waiting.push({ seqs, resolve, reject });
      if (working < atOnce) void work();
    });
}
