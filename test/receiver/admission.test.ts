import { expect, test } from "vitest";
import { addressGroup } from "../../src/core/receiver/connections.ts";
import { createWaitingPlaces } from "../../src/core/receiver/limits.ts";

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["::ffff:10.1.2.3", "::ffff:10.1.2.3"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::7", "2001:db8:1:2"],
  ["2001:db8::7", "2001:db8:0:0"],
  ["::1", "0:0:0:0"],
  [undefined, ""],
])("the address %s counts as %s", (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

test("places are limited in all and for each address, and come back", () => {
  const places = createWaitingPlaces({ max: 3, maxPerAddress: 2 });
  expect(["a", "a", "a", "b", "c"].map((address) => places.reserve(address))).toEqual([true, true, false, true, false]);
  places.release("a");
  expect([places.reserve("c"), places.reserve("a")]).toEqual([true, false]);
});
