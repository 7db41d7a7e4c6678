import { expect, test } from "vitest";
import { kindNamed } from "../../../src/core/mirror/changes/kind-named.ts";

test("a kind is found by its whole name", () => {
  expect(kindNamed("order.paid")).toEqual({ kind: "order.paid" });
});

test.each([
  ["order.payed", '"order.payed" is no kind of change. Did you mean "order.paid"?'],
  ["invoice.refunded", '"invoice.refunded" is no kind of change. Did you mean "order.refunded"?'],
  ["paused", '"paused" is no kind of change. Did you mean "subscription.paused"?'],
  ["deleted", '"deleted" is no kind of change. Did you mean "customer.deleted"?'],
])("%s is told the nearest kind, or the one with the same last word", (name, problem) => {
  expect(kindNamed(name)).toEqual({ problem });
});

test("a name that is near no kind is told all of them", () => {
  expect(kindNamed("")).toEqual({
    problem: expect.stringMatching(/^"" is no kind of change\. The kinds are order\.created, .*\.$/),
  });
});

test("a long name is cut", () => {
  const found = kindNamed("x".repeat(10_000));
  expect("problem" in found && found.problem.length).toBeLessThan(1_000);
});
