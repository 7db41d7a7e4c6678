import { expect, test } from "vitest";
import { reasonInWords } from "../../src/core/worker/reason-words.ts";

test.each([
  ["attempt 3: database error 23514", /rule of the mirror's tables/],
  ["attempt 1: database error 42P01", /table, a column or a right is missing/],
])("an error of the database is said in words: %s", (reason, words) => {
  expect(reasonInWords(reason)).toMatch(words);
});

test.each([
  ["id: Invalid input: expected string, received undefined", "The event has no id."],
  ["total: Invalid input: expected number, received string", "Its total is a string, and a number was expected."],
  ["items: Invalid input: expected array, received null", "Its items is null, and an array was expected."],
  ["body: not JSON in UTF-8", "Its body is not JSON in UTF-8."],
  ["data.object: no object", "The event has no object at data.object."],
])("a body that could not be read is said in words: %s", (reason, words) => {
  expect(reasonInWords(reason)).toBe(words);
});

test.each([null, "no JSON", "database error XX000", "database error __proto__"])(
  "any other reason speaks for itself: %s",
  (reason) => {
    expect(reasonInWords(reason)).toBe(null);
  },
);
