import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  canonicalContent,
  canonicalJson,
  contentHash,
  NestedTooDeeply,
  rememberedShapeKeys,
} from "../../src/core/mirror/canonical.ts";
import { sqlArray } from "../../src/platform/postgres/values.ts";
import { inRecord } from "../../src/core/mirror/compare/stored-rows.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { anyText } from "../support/any-text.ts";

const parse = (json: string): Record<string, unknown> => JSON.parse(json) as Record<string, unknown>;

describe("the canonical form of content", () => {
  test("does not depend on the order of keys, at any depth", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        expect(canonicalJson(reversed(object) as Record<string, unknown>)).toBe(canonicalJson(object));
      }),
    );
  });

  test("is JSON that says the same, and stays what it is when it is made again", () => {
    fc.assert(
      fc.property(fc.dictionary(anyText(), fc.jsonValue()), (object) => {
        const json = canonicalJson(object);
        expect(canonicalJson(parse(json))).toBe(json);
      }),
    );
  });

  test.each([
    ["a NUL", { a: "x\u0000" }, true],
    ["a lone surrogate in a list", { a: [{ b: "\udc00" }] }, true],
    ["such a key", { a: { "\ud800": 1 } }, true],
    ["a U+FFFD that came as such", { a: "\ufffd" }, false],
    ["a pair of surrogates", { a: "\u{1f375}" }, false],
    ["a NUL where the content is not the object's own, beside U+FFFD", { own: "\ufffd", items: "\0" }, false],
  ])("says whether it replaced text: %s", (_, object, isReplaced) => {
    expect(canonicalContent(object, new Set(["items"]))).toEqual({
      json: canonicalJson(object, new Set(["items"])),
      isReplaced,
      mayHoldCardNumber: false,
    });
  });

  test.each([
    ["digits in a free text", { metadata: { note: ["4242 4242 4242 4242"] } }, true],
    ["a long number", { metadata: { note: 4242424242424242 } }, true],
    ["a key of digits", { metadata: { "4242424242424242": 1 } }, true],
    ["ids, times and short texts", { id: "4242424242424242", created_at: "2025-03-01", a: "12" }, false],
    ["what is not the object's own", { items: "4242424242424242" }, false],
  ])("says whether card numbers are to be looked for: %s", (_, object, expected) => {
    const { mayHoldCardNumber } = canonicalContent(object, new Set(["items"]));
    expect(mayHoldCardNumber).toBe(expected);
  });

  test("leaves an absent key and a null one the same, but not a null in a list", () => {
    expect(canonicalJson({ a: null, b: undefined, c: { d: null } })).toBe('{"c": {}}');
    expect(canonicalJson({ list: [null, 1] })).toBe('{"list": [null, 1]}');
  });

  test("leaves out what is not the object's own, at the top only", () => {
    const object = { items: [1], nested: { items: [2] } };
    expect(canonicalJson(object, new Set(["items"]))).toBe('{"nested": {"items": [2]}}');
  });

  test("keeps keys that JavaScript gives a meaning, and changes no prototype", () => {
    const hostile = parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1},"a":1}');
    const json = canonicalJson(hostile);
    expect(json).toBe('{"a": 1, "__proto__": {"polluted": true}, "constructor": {"prototype": 1}}');
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("replaces what jsonb refuses, in texts and in keys, and keeps real pairs of surrogates", () => {
    expect(parse(canonicalJson({ text: "a\u0000b\ud800c\udc00 \u{1f600}" }))).toEqual({
      text: "a\ufffdb\ufffdc\ufffd \u{1f600}",
    });
    expect(canonicalJson({ "k\u0000": 1 })).toBe('{"k\ufffd": 1}');
    expect(canonicalJson({ z: 1, "\ud800": 2, "\uffff": 3 })).toBe(canonicalJson({ "\uffff": 3, "\ufffd": 2, z: 1 }));
  });

  test("writes texts as JSON does", () => {
    const text = 'quote " backslash \\ tab \t line \n bell \u0007 del \u007f ls \u2028 é';
    expect(canonicalJson({ text })).toBe(`{"text": ${JSON.stringify(text)}}`);
  });

  test("writes numbers exactly, and none that are not numbers in JSON", () => {
    expect(canonicalJson({ a: -0, b: -1.5e21, c: 0.1, d: Infinity, e: -1.5e-7 })).toBe(
      '{"a": 0, "b": -1500000000000000000000, "c": 0.1, "d": null, "e": -0.00000015}',
    );
  });

  test("refuses what is nested so deeply that it would exhaust a stack", () => {
    const deep = parse(`{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`);
    expect(() => canonicalJson(deep)).toThrow(NestedTooDeeply);
    const objects = parse(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`);
    expect(() => canonicalJson(objects)).toThrow(NestedTooDeeply);
    expect(() => canonicalJson(parse(`{"a":${"[".repeat(50)}${"]".repeat(50)}}`))).not.toThrow();
  });
});

describe("beside the database", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.destroy());

  test("the canonical form is what Postgres prints of it", async () => {
    const odd = ["a,b", "b\u0000", "\ud800", "é", "\u{1f600}", "\uffff", "__proto__", ""];
    const key = fc.oneof(anyText(), fc.constantFrom(...odd));
    const objects = fc.sample(fc.dictionary(key, fc.oneof(fc.jsonValue(), fc.double(), anyText())), {
      numRuns: 500,
      seed: 1,
    });
    const given = objects.map((object) => canonicalJson(object));
    const { rows } = await database.db.raw<{ rows: { printed: string }[] }>(
      "select json::jsonb::text as printed from unnest(?::text[]) with ordinality as t(json, n) order by n",
      [given],
    );
    expect(rows.map(({ printed }) => printed)).toEqual(given);
  });

  test("the text of a row is what Postgres prints of it", async () => {
    const odd = ["", " ", "a,b", '"', "\\", "(", ")", "\t", "\n", "\v", "\r", "\u00a0", "\u2028", "é", "null"];
    const value = fc.oneof(
      fc.constant(null),
      fc.constantFrom(...odd),
      fc.string({ unit: fc.constantFrom(...odd, "b") }),
    );
    const given = fc.sample(fc.tuple(value, value, value), { numRuns: 500, seed: 1 });
    const { rows } = await database.db.raw<{ rows: { printed: string }[] }>(
      "select row(a, b, c)::text as printed from unnest(?::text[], ?::text[], ?::text[]) with ordinality as t(a, b, c, n) order by n",
      [0, 1, 2].map((n) => sqlArray(given.map((values) => values[n] ?? null))),
    );
    expect(rows.map(({ printed }) => printed)).toEqual(
      given.map((values) => `(${values.map((each) => (each === null ? "" : inRecord(each))).join(",")})`),
    );
  });
});

test("whatever keys senders choose, few are remembered, and the content stays right", () => {
  for (let n = 0; n < 800; n++) {
    const keys = Array.from({ length: (n % 40) + 1 }, (_, k) => `${k}${n % 2 === 0 ? "a" : n}`);
    const object = Object.fromEntries(keys.map((key) => [key, 1]));
    expect(parse(canonicalJson(object))).toEqual(object);
    expect(rememberedShapeKeys()).toBeLessThanOrEqual(5_000);
  }
});

test("equal content has one hash, other content another", () => {
  expect(contentHash(canonicalJson({ a: 1, b: [2] }))).toBe(contentHash(canonicalJson({ b: [2], a: 1 })));
  expect(contentHash(canonicalJson({ a: 1 }))).not.toBe(contentHash(canonicalJson({ a: "1" })));
  expect(contentHash("{}")).toMatch(/^[0-9a-f]{32}$/);
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, inner]) => [key, reversed(inner)]));
}
