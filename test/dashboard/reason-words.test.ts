import { expect, test } from "vitest";
import { reasonInWords } from "../../src/parts/browse/events/pages/reason-words.ts";

test.each([
  ["attempt 3: database error 23514", /rule of the mirror's tables/],
  ["attempt 1: database error 42P01", /table, a column or a right is missing/],
])("an error of the database is said in words: %s", (reason, words) => {
  expect(reasonInWords(reason)).toMatch(words);
});

test.each([null, "no JSON", "database error XX000", "database error __proto__"])(
  "any other reason speaks for itself: %s",
  (reason) => {
    expect(reasonInWords(reason)).toBe(null);
  },
);
