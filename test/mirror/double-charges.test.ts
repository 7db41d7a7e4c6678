import fc from "fast-check";
import { expect, test } from "vitest";
import { type Charge, doublesOf, isDouble } from "../../src/core/mirror/double-charges.ts";

const first: Charge = {
  id: "a",
  customerId: "frances",
  amount: 1_980n,
  currency: "usd",
  card: { id: "pm-1", brand: "visa", lastFour: "4242" },
  tookMoney: true,
  at: new Date("2026-11-22T04:08:29Z"),
};
const again: Charge = { ...first, id: "b", at: new Date("2026-11-22T04:08:31Z") };
const unknownCard = { id: null, brand: null, lastFour: null };

test.each<[string, Partial<Charge>]>([
  ["two seconds later", {}],
  ["ten minutes later", { at: new Date("2026-11-22T04:18:29Z") }],
  ["by the same card, typed in again", { card: { ...first.card, id: "pm-2" } }],
  ["by an unknown card", { card: unknownCard }],
])("as much %s is a double charge", (_, changed) => {
  expect(isDouble(first, { ...again, ...changed })).toBe(true);
});

test.each<[string, Partial<Charge>]>([
  ["after ten minutes", { at: new Date("2026-11-22T04:18:29.001Z") }],
  ["at an unknown time", { at: null }],
  ["of another customer", { customerId: "joan" }],
  ["of another amount", { amount: 1_981n }],
  ["in another currency", { currency: "eur" }],
  ["to a card of other digits", { card: { ...first.card, id: "pm-2", lastFour: "1111" } }],
  ["to another card of unknown digits", { card: { id: "pm-2", brand: "visa", lastFour: null } }],
  ["that was declined", { tookMoney: false }],
  ["that is the same", { id: "a" }],
])("a charge %s is none", (_, changed) => {
  expect(isDouble(first, { ...again, ...changed })).toBe(false);
});

test.each<[string, Partial<Charge>]>([
  ["customer", { customerId: null }],
  ["amount", { amount: null }],
  ["money", { amount: 0n }],
  ["currency", { currency: null }],
])("two charges without a known %s are none", (_, changed) => {
  expect(isDouble({ ...first, ...changed }, { ...again, ...changed })).toBe(false);
});

const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);
const charge = fc.record({
  id: fc.uuid(),
  customerId: oneOf("frances", "joan", null),
  amount: oneOf(0n, 1_980n, 1_981n, null),
  currency: oneOf("usd", "eur", null),
  card: fc.record({
    id: oneOf("pm-1", "pm-2", null),
    brand: oneOf("visa", null),
    lastFour: oneOf("4242", "1111", null),
  }),
  tookMoney: fc.boolean(),
  at: fc.option(
    fc.date({ min: new Date("2026-11-22T04:00:00Z"), max: new Date("2026-11-22T04:30:00Z"), noInvalidDate: true }),
  ),
});

test("of two charges each is a double of the other, or neither; never one that took no money", () => {
  fc.assert(
    fc.property(charge, charge, (a, b) => {
      expect(isDouble(a, b)).toBe(isDouble(b, a));
      if (isDouble(a, b)) expect([a.tookMoney, b.tookMoney, a.amount]).toEqual([true, true, b.amount]);
    }),
  );
});

test("the doubles of a charge are the same in whatever order the charges come, the nearest first", () => {
  fc.assert(
    fc.property(charge, fc.array(charge), (one, others) => {
      const apart = (found: readonly Charge[]) => found.map(({ at }) => Math.abs(Number(at) - Number(one.at)));
      const doubles = apart(doublesOf(one, others));
      expect(doubles).toEqual(doubles.toSorted((a, b) => a - b));
      expect(apart(doublesOf(one, others.toReversed()))).toEqual(doubles);
    }),
  );
});
