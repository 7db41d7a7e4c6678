import fc from "fast-check";
import { expect, test } from "vitest";
import { displayWidth, shortenedMiddle } from "../../src/app/cli/display-width.ts";
import { type Cell, layOut } from "../../src/app/cli/table.ts";

const at = new Date("2026-11-29T04:13:39.123Z");
const events = {
  head: ["seq", "received", "type", "state", "resource", "deliveries", "reason"],
  rows: [
    [12, at, "order.paid", "applied", "order ord_01HZX3N8K2QW5E7R", 1, ""],
    [113, at, "subscription.payment_failed", "dead", "subscription sub_01HZX3N8K2QW5E7RAB", 3, "the event has no id"],
  ],
  spare: ["deliveries"],
};

/** Outside text: controls, wide characters, combining marks, long words. */
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc
    .array(fc.constantFrom("an", "ord_01HZX3N8K2QW5E7R", "日本語", "é", "ada@example.com"), { maxLength: 8 })
    .map((words) => words.join(" ")),
);
const cell: fc.Arbitrary<Cell> = fc.oneof(
  text,
  fc.integer(),
  fc.constant(at),
  fc.constant(null),
  fc.array(text, { maxLength: 3 }),
);
const grid = fc.integer({ min: 1, max: 9 }).chain((columns) =>
  fc.record({
    head: fc.array(fc.constantFrom("id", "state", "first seen", "what it does"), {
      minLength: columns,
      maxLength: columns,
    }),
    rows: fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), { maxLength: 5 }),
  }),
);

test("no line is wider than the terminal", () => {
  fc.assert(
    fc.property(grid, fc.integer({ min: 2, max: 200 }), (table, width) => {
      for (const line of layOut(table, width)) expect(displayWidth(line)).toBeLessThanOrEqual(width);
    }),
  );
});

test("no cell loses a word where nothing limits the width, nor in blocks", () => {
  fc.assert(
    fc.property(grid, fc.constantFrom(Infinity, 2), ({ head, rows }, width) => {
      // Blocks break words, so the text is compared without its blanks.
      const shown = layOut({ head, rows: rows.map((row) => [...row, "end"]) }, width)
        .join("")
        .replaceAll(/\s/gu, "");
      for (const value of rows.flat()) {
        for (const part of typeof value === "string" ? value.split(" ") : []) {
          expect(shown).toContain(part.replaceAll(/\p{Cc}/gu, "\ufffd").replaceAll(/\s/gu, ""));
        }
      }
    }),
  );
});

test("a table of 80 places wraps sentences, shortens ids and times, and leaves spare columns out first", () => {
  expect(layOut(events, 80)).toMatchInlineSnapshot(`
    [
      "seq  received           type             state    resource        reason",
      "───  ─────────────────  ───────────────  ───────  ──────────────  ──────────────",
      " 12  2026-11-29 04:13Z  order.paid       applied  order",
      "                                                  ord_01H…QW5E7R",
      "113  2026-11-29 04:13Z  subscri…_failed  dead     subscription    the event has",
      "                                                  sub_01H…5E7RAB  no id",
      "(shortened, without deliveries; --wide shows all)",
    ]
  `);
});

test("a terminal of 20 places shows each row as a block with everything in it", () => {
  const lines = layOut(events, 20);
  expect(lines).toContain("deliveries: 1");
  expect(lines.join("").replaceAll(" ", "")).toContain("sub_01HZX3N8K2QW5E7RAB");
});

test("an amount is never shortened", () => {
  const lines = layOut(
    { head: ["name", "amount", "note"], rows: [["a".repeat(40), "123,456,789,012.45", "b".repeat(40)]] },
    60,
  );
  expect(lines.join("\n")).toContain("123,456,789,012.45");
});

test("a width counts what the terminal shows", () => {
  expect(["abc", "日本", "e\u0301", "क्ष", "한"].map(displayWidth)).toEqual([3, 4, 1, 2, 2]);
  expect(shortenedMiddle("日本語日本語", 6)).toBe("日…語");
});
