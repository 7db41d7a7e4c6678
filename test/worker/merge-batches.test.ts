import { expect, test } from "vitest";
import { mergeBatches } from "../../src/worker/start-worker.ts";

/** Records batches and holds each until it is told to end. */
function heldBatches() {
  const begun: number[][] = [];
  const ends: { resolve(): void; reject(error: Error): void }[] = [];
  const apply = (seqs: readonly number[]): Promise<void> =>
    new Promise((resolve, reject) => {
      begun.push([...seqs]);
      ends.push({ resolve, reject });
    });
  return { begun, ends, apply };
}

test("applies at once while it keeps up, and merges what comes meanwhile", async () => {
  const { begun, ends, apply } = heldBatches();
  const merged = mergeBatches(apply, { atOnce: 1, maxSeqs: 500 });
  const first = merged([1, 2]);
  const others = Promise.all([merged([3]), merged([4, 5]), merged([3])]);
  expect(begun).toEqual([[1, 2]]);
  ends[0]?.resolve();
  await first;
  expect(begun).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
  ends[1]?.resolve();
  await others;
});

test("keeps to the number of batches at once and to the size of one", async () => {
  const { begun, ends, apply } = heldBatches();
  const merged = mergeBatches(apply, { atOnce: 2, maxSeqs: 3 });
  const all = Promise.all([merged([1]), merged([2]), merged([3, 4]), merged([5, 6]), merged([7])]);
  expect(begun).toEqual([[1], [2]]);
  ends[0]?.resolve();
  await expect.poll(() => begun.length).toBe(3);
  ends[1]?.resolve();
  await expect.poll(() => begun.length).toBe(4);
  expect(begun.slice(2)).toEqual([
    [3, 4],
    [5, 6, 7],
  ]);
  for (const end of ends) end.resolve();
  await all;
});

test("takes a job that is larger than a batch as a batch of its own", async () => {
  const { begun, ends, apply } = heldBatches();
  const merged = mergeBatches(apply, { atOnce: 1, maxSeqs: 2 });
  const job = merged([1, 2, 3]);
  expect(begun).toEqual([[1, 2, 3]]);
  ends[0]?.resolve();
  await job;
});

test("fails the jobs of a batch that failed, and goes on with the others", async () => {
  const { begun, ends, apply } = heldBatches();
  const merged = mergeBatches(apply, { atOnce: 1, maxSeqs: 500 });
  const first = merged([1]);
  const second = merged([2]);
  ends[0]?.reject(new Error("the database went away"));
  await expect(first).rejects.toThrow("the database went away");
  await expect.poll(() => begun.length).toBe(2);
  ends[1]?.resolve();
  await second;
});
