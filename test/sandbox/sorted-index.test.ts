import fc from "fast-check";
import { expect, test } from "vitest";

import {
  ascending,
  createSortedIndex,
  descending,
  insertSorted,
  removeSorted,
} from "../../src/sandbox/engine/store/sorted-index.ts";

const byNumber = (a: number, b: number) => a - b;

test("keeps its order through any insertions and removals, across chunks", () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 5000 }), { maxLength: 2500 });
  fc.assert(
    fc.property(numbers, fc.infiniteStream(fc.boolean()), (entries, coins) => {
      const index = createSortedIndex(byNumber);
      for (const entry of entries) insertSorted(index, entry);
      const kept = entries.filter((entry) => {
        const keeps = coins.next().value === true;
        if (!keeps) expect(removeSorted(index, entry)).toBe(true);
        return keeps;
      });
      kept.sort(byNumber);
      expect([...ascending(index)]).toEqual(kept);
      expect([...descending(index)]).toEqual(kept.toReversed());
      expect(index.size).toBe(kept.length);
    }),
    { numRuns: 30 },
  );
});

test("starts anywhere, in both directions", () => {
  const entries = Array.from({ length: 3000 }, (_, i) => i * 2);
  const index = createSortedIndex(byNumber);
  for (const entry of entries) insertSorted(index, entry);
  for (const bound of [-1, 0, 1, 1023, 1024, 2001, 5998, 5999]) {
    expect([...ascending(index, (entry) => entry >= bound)]).toEqual(
      entries.filter((entry) => entry >= bound),
    );
    expect([...descending(index, (entry) => entry <= bound)]).toEqual(
      entries.filter((entry) => entry <= bound).toReversed(),
    );
  }
});

test("does not remove what is not there", () => {
  const index = createSortedIndex(byNumber);
  expect(removeSorted(index, 1)).toBe(false);
  insertSorted(index, 2);
  expect(removeSorted(index, 1)).toBe(false);
  expect(removeSorted(index, 3)).toBe(false);
  expect(index.size).toBe(1);
});
