import fc from "fast-check";
import { expect, test } from "vitest";
import { type PageQuery, readPage } from "../../src/parts/sandbox/engine/store/read-page.ts";
import { type Table, createTable } from "../../src/parts/sandbox/engine/store/table.ts";

interface Thing {
  id: string;
  created_at: string;
  updated_at: string;
  color: string;
  size: number;
}

const iso = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();

const thing = fc.record({
  id: fc.uuid(),
  // Few instants, so that many tie.
  created_at: fc.integer({ min: 0, max: 20 }).map(iso),
  updated_at: fc.integer({ min: 20, max: 30 }).map(iso),
  color: fc.constantFrom("red", "green", "blue"),
  size: fc.integer({ min: 0, max: 9 }),
});

const query = fc.record({
  colors: fc.option(fc.subarray(["red", "green", "blue"], { minLength: 1 })),
  from: fc.option(fc.integer({ min: 0, max: 20 })),
  before: fc.option(fc.integer({ min: 0, max: 20 })),
  least: fc.option(fc.integer({ min: 0, max: 9 })),
  most: fc.integer({ min: 0, max: 9 }),
  among: fc.option(fc.array(fc.nat({ max: 80 }), { maxLength: 30 })),
  sortField: fc.constantFrom("created_at", "updated_at", "size"),
  descending: fc.boolean(),
  limit: fc.integer({ min: 1, max: 25 }),
});

type Wish = typeof query extends fc.Arbitrary<infer W> ? W : never;

function tableOf(things: readonly Thing[]): Table<Thing> {
  const table = createTable<Thing>({
    groups: { color: (record) => record.color },
    sorts: { updated_at: (record) => record.updated_at, size: (record) => record.size },
  });
  for (const record of things) {
    table.insert({ ...record, updated_at: iso(20), size: 5, color: "blue" });
  }
  for (const record of things) table.replace(record);
  return table;
}

/** Also ids that nothing has, and one twice. */
const idsAmong = (things: readonly Thing[], places: readonly number[]) =>
  places.map((place) => things[place]?.id ?? "none");

function pageQuery(things: readonly Thing[], wish: Wish): PageQuery<Thing> {
  return {
    ...(wish.colors === null ? {} : { anyOf: { color: wish.colors } }),
    ...(wish.from === null ? {} : { createdFromMs: Date.parse(iso(wish.from)) }),
    ...(wish.before === null ? {} : { createdBeforeMs: Date.parse(iso(wish.before)) }),
    ...(wish.among === null ? {} : { among: idsAmong(things, wish.among) }),
    test: ({ size }) => wish.least === null || (size >= wish.least && size <= wish.most),
    sortField: wish.sortField,
    descending: wish.descending,
    limit: wish.limit,
  };
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
        (wish.among === null || idsAmong(things, wish.among).includes(t.id)),
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
      const table = tableOf(things);
      const seen: string[] = [];
      for (;;) {
        const last = table.row(seen.at(-1) ?? "");
        const page = readPage(table, {
          ...pageQuery(things, wish),
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
      const table = tableOf(things);
      const all = expected(things, wish);
      const last = all.at(-1);
      if (last === undefined) return;
      let seen = [last];
      for (;;) {
        const first = table.row(seen[0] ?? "");
        if (first === undefined) throw new Error("lost the first row");
        const page = readPage(table, { ...pageQuery(things, wish), before: first });
        seen = [...page.records.map(({ id }) => id), ...seen];
        if (!page.hasMore) break;
      }
      expect(seen).toEqual(all);
    }),
    { numRuns: 300 },
  );
});

test("a deleted record is in no list and no group", () => {
  const table = tableOf([
    { id: "a", created_at: iso(1), updated_at: iso(21), color: "red", size: 1 },
    { id: "b", created_at: iso(2), updated_at: iso(22), color: "red", size: 1 },
  ]);
  table.delete("a");
  expect([table.size, table.get("a")]).toEqual([1, undefined]);
  expect(table.inGroup("color", "red").map(({ id }) => id)).toEqual(["b"]);
  expect(table.inGroup("color", "blue")).toEqual([]);
  expect(table.all().map(({ id }) => id)).toEqual(["b"]);
});

test("a page by creation of a large table looks at few rows, within bounds and along one group", () => {
  let looks = 0;
  const table = createTable<Thing>({ groups: { color: (record) => record.color } });
  const count = 30_000;
  for (let i = 0; i < count; i++) {
    const at = iso(i);
    const color = i % 1000 === 0 ? "red" : "blue";
    table.insert({ id: `t${i}`, created_at: at, updated_at: at, color, size: i });
  }
  const middle = table.row(`t${count / 2}`);
  if (middle === undefined) throw new Error("no row in the middle");
  const test = () => {
    looks += 1;
    return true;
  };
  const filters: Partial<PageQuery<Thing>>[] = [
    {},
    { createdBeforeMs: middle.createdAtMs },
    { createdFromMs: middle.createdAtMs, anyOf: { color: ["blue"] } },
    { anyOf: { color: ["red"] } },
  ];
  for (const filter of filters) {
    for (const descending of [true, false]) {
      for (const cursor of [{}, { after: middle }, { before: middle }]) {
        looks = 0;
        const sortField = "created_at";
        readPage(table, { ...filter, ...cursor, test, sortField, descending, limit: 50 });
        expect(looks, JSON.stringify([filter, descending])).toBeLessThanOrEqual(51);
      }
    }
  }
});
