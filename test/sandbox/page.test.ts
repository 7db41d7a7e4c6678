import fc from "fast-check";
import { expect, test } from "vitest";

import type { PageQuery } from "../../src/sandbox/engine/store/page-filter.ts";
import { readPage } from "../../src/sandbox/engine/store/read-page.ts";
import { indexesAt } from "../../src/sandbox/engine/store/group.ts";
import { type Table, createTable } from "../../src/sandbox/engine/store/table.ts";

interface Thing {
  id: string;
  created_at: string;
  updated_at: string;
  color: string;
  size: number;
  text: string;
}

const iso = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();

const thing = fc.record({
  id: fc.uuid(),
  // Few instants, so that many tie.
  created_at: fc.integer({ min: 0, max: 20 }).map(iso),
  updated_at: fc.integer({ min: 20, max: 30 }).map(iso),
  color: fc.constantFrom("red", "green", "blue"),
  size: fc.integer({ min: 0, max: 9 }),
  text: fc
    .array(fc.constantFrom("Ada", "adam.b@x.test", "Bo", "Boole, X"), { maxLength: 3 })
    .map((words) => words.join(" ")),
});

const query = fc.record({
  colors: fc.option(fc.subarray(["red", "green", "blue"], { minLength: 1 })),
  from: fc.option(fc.integer({ min: 0, max: 20 })),
  before: fc.option(fc.integer({ min: 0, max: 20 })),
  least: fc.option(fc.integer({ min: 0, max: 9 })),
  most: fc.integer({ min: 0, max: 9 }),
  words: fc.option(
    fc.subarray(["a", "ad", "adam", "bo", "x", "zz"], { minLength: 1, maxLength: 2 }),
  ),
  isLarge: fc.boolean(),
  sortField: fc.constantFrom("created_at", "updated_at", "size"),
  descending: fc.boolean(),
  limit: fc.integer({ min: 1, max: 25 }),
});

type Wish = typeof query extends fc.Arbitrary<infer W> ? W : never;

function tableOf(things: readonly Thing[], isLarge = true): Table<Thing> {
  const table = createTable<Thing>({
    groups: { color: (record) => record.color },
    // Large groups have indexes of their own, small ones are looked through.
    large: isLarge ? ["color"] : [],
    sorts: { updated_at: (record) => record.updated_at, size: (record) => record.size },
    text: (record) => record.text,
    amounts: { size: (record) => record.size },
    rowsPerSpan: 2,
  });
  for (const record of things)
    table.insert({ ...record, updated_at: iso(20), size: 5, text: "Ada zz" });
  for (const record of things) table.replace(record);
  return table;
}

function pageQuery(wish: Wish): PageQuery<Thing> {
  return {
    ...(wish.colors === null ? {} : { anyOf: { color: wish.colors } }),
    ...(wish.from === null ? {} : { createdFromMs: Date.parse(iso(wish.from)) }),
    ...(wish.before === null ? {} : { createdBeforeMs: Date.parse(iso(wish.before)) }),
    ...(wish.least === null ? {} : { within: { size: { least: wish.least, most: wish.most } } }),
    ...(wish.words === null ? {} : { words: wish.words }),
    sortField: wish.sortField,
    descending: wish.descending,
    limit: wish.limit,
  };
}

function beginsWord(text: string, beginning: string): boolean {
  return text
    .toLowerCase()
    .split(/[ .,@]/)
    .some((word) => word.startsWith(beginning));
}

/** The same by filtering and sorting everything. */
function expected(things: readonly Thing[], wish: Wish): string[] {
  const inOrder = things
    .filter(
      (t) =>
        (wish.colors === null || wish.colors.includes(t.color)) &&
        (wish.from === null || t.created_at >= iso(wish.from)) &&
        (wish.before === null || t.created_at < iso(wish.before)) &&
        (wish.least === null || (t.size >= wish.least && t.size <= wish.most)) &&
        (wish.words === null || wish.words.every((word) => beginsWord(t.text, word))),
    )
    .map((t) => ({ t, key: `${String(t[wish.sortField as keyof Thing])}|${t.created_at}` }))
    // A stable sort: what ties stays in the order of creation.
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ t }) => t.id);
  return wish.descending ? inOrder.toReversed() : inOrder;
}

const unique = fc.uniqueArray(thing, { selector: (t) => t.id, maxLength: 80 });

test("pages forward give every item exactly once, whatever the filter, order and size", () => {
  fc.assert(
    fc.property(unique, query, (things, wish) => {
      const table = tableOf(things, wish.isLarge);
      const seen: string[] = [];
      for (;;) {
        const last = table.row(seen.at(-1) ?? "");
        const page = readPage(table, {
          ...pageQuery(wish),
          ...(last === undefined ? {} : { after: last }),
        });
        seen.push(...page.records.map(({ id }) => id));
        if (!page.hasMore) break;
        expect(page.records.length).toBe(wish.limit);
      }
      expect(seen).toEqual(expected(things, wish));
    }),
    { numRuns: 300 },
  );
});

test("pages backward give the items just before, in list order", () => {
  fc.assert(
    fc.property(unique, query, (things, wish) => {
      const table = tableOf(things, wish.isLarge);
      const all = expected(things, wish);
      const last = all.at(-1);
      if (last === undefined) return;
      let seen = [last];
      for (;;) {
        const first = table.row(seen[0] ?? "");
        if (first === undefined) throw new Error("lost the first row");
        const page = readPage(table, { ...pageQuery(wish), before: first });
        seen = [...page.records.map(({ id }) => id), ...seen];
        if (!page.hasMore) break;
      }
      expect(seen).toEqual(all);
    }),
    { numRuns: 300 },
  );
});

test("a deleted record is in no index", () => {
  const table = tableOf([
    { id: "a", created_at: iso(1), updated_at: iso(21), color: "red", size: 1, text: "Ada" },
    { id: "b", created_at: iso(2), updated_at: iso(22), color: "red", size: 1, text: "Bo" },
  ]);
  table.delete("a");
  expect(table.size).toBe(1);
  expect(table.inGroup("color", "red").map(({ id }) => id)).toEqual(["b"]);
  const orders = [table.sorted("updated_at"), table.groupSorted("color", "red", "updated_at")];
  const everywhere = table.spans.covering(-Infinity, Infinity);
  for (const order of orders) {
    const indexes = order === undefined ? [] : indexesAt(order, everywhere);
    expect(indexes.map(({ size }) => size)).toEqual([1]);
  }
  expect([table.words?.startingWith("ada")?.size, table.words?.startingWith("b")?.size]).toEqual([
    0, 1,
  ]);
  expect(table.all().map(({ id }) => id)).toEqual(["b"]);
});

test("a page of a large table looks at few rows, whatever the filters and the order", () => {
  let looks = 0;
  const table = createTable<Thing>({
    groups: {
      color: (record) => {
        looks += 1;
        return record.color;
      },
    },
    large: ["color"],
    sorts: { updated_at: (record) => record.updated_at },
    text: (record) => record.text,
    amounts: {
      size: (record) => {
        looks += 1;
        return record.size;
      },
    },
    rowsPerSpan: 1024,
  });
  const count = 30_000;
  for (let i = 0; i < count; i++) {
    table.insert({
      id: `t${i}`,
      created_at: iso(i),
      // Most change soon, some much later.
      updated_at: iso(i + (i % 7 === 0 ? count - i : i % 11)),
      color: i % 20 === 0 ? "red" : "blue",
      size: (i * 31) % 100,
      text: "",
    });
  }
  const middle = table.row(`t${count / 2}`);
  if (middle === undefined) throw new Error("no row in the middle");
  const half = { createdBeforeMs: middle.createdAtMs };
  const filters: Partial<PageQuery<Thing>>[] = [
    { ...half, anyOf: { color: ["red"] }, within: { size: { least: 0, most: 30 } } },
    { ...half, anyOf: { color: ["blue"] }, within: { size: { least: 0, most: 9 } } },
    { createdFromMs: middle.createdAtMs, within: { size: { least: 40, most: 44 } } },
  ];
  for (const filter of filters) {
    for (const sortField of ["created_at", "updated_at"]) {
      for (const descending of [true, false]) {
        for (const cursor of [{}, { after: middle }, { before: middle }]) {
          looks = 0;
          readPage(table, { ...filter, ...cursor, sortField, descending, limit: 50 });
          expect(looks, JSON.stringify([filter, sortField, descending])).toBeLessThan(2000);
        }
      }
    }
  }
});
