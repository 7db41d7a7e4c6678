import { describe, expect, test } from "vitest";
import { changeKinds, factsOf, kindsOf } from "../../../src/mirror/changes/kinds.ts";
import { mirrorResources } from "../../../src/mirror/resources.ts";
import type { Resource } from "../../../src/mirror/snapshot.ts";

type Columns = Record<string, string | null>;

/** From a row's columns, null where there was none, to its columns after the write. */
const cases: readonly [Resource, Columns | null, Columns, string[]][] = [
  ["order", null, { status: "pending" }, ["created"]],
  ["order", null, { status: "succeeded" }, ["created", "paid"]],
  ["order", null, { status: "refunded" }, ["created", "paid"]],
  ["order", null, { status: "failed", attempt_count: "1" }, ["created", "failed"]],
  ["order", null, { status: null }, ["created"]],
  ["order", null, { status: "a_new_one" }, ["created"]],
  ["order", { status: "pending" }, { status: "succeeded" }, ["paid"]],
  ["order", { status: "failed" }, { status: "succeeded" }, ["paid"]],
  ["order", { status: null }, { status: "succeeded" }, ["paid"]],
  ["order", { status: "succeeded" }, { status: "succeeded" }, []],
  ["order", { status: "succeeded" }, { status: "partially_refunded" }, []],
  ["order", { status: "succeeded" }, { status: "chargeback" }, []],
  ["order", { status: "pending" }, { status: "failed" }, ["failed"]],
  [
    "order",
    { status: "failed", attempt_count: "1" },
    { status: "failed", attempt_count: "2" },
    ["failed"],
  ],
  [
    "order",
    { status: "failed", attempt_count: null },
    { status: "failed", attempt_count: null },
    [],
  ],
  [
    "order",
    { status: "failed", attempt_count: null },
    { status: "failed", attempt_count: "1" },
    [],
  ],
  [
    "order",
    { status: "failed", attempt_count: null },
    { status: "failed", attempt_count: "2" },
    ["failed"],
  ],
  ["order", { status: "pending" }, { status: "voided" }, ["voided"]],
  ["subscription", null, { status: "active", current_billing_cycle: "1" }, ["created", "started"]],
  ["subscription", null, { status: "failed" }, ["created"]],
  ["subscription", { status: "failed" }, { status: "active" }, ["started"]],
  [
    "subscription",
    { status: "active", current_billing_cycle: "1" },
    { status: "active", current_billing_cycle: "2" },
    ["renewed"],
  ],
  [
    "subscription",
    { status: "past_due", current_billing_cycle: "1" },
    { status: "active", current_billing_cycle: "2" },
    ["renewed", "recovered"],
  ],
  [
    "subscription",
    { status: "past_due", current_billing_cycle: "1" },
    { status: "completed", current_billing_cycle: "2" },
    ["renewed", "recovered", "completed"],
  ],
  [
    "subscription",
    { status: "past_due", current_billing_cycle: "1" },
    { status: "completed", current_billing_cycle: "1" },
    ["completed"],
  ],
  [
    "subscription",
    { status: "active", current_billing_cycle: null },
    { status: "active", current_billing_cycle: "5" },
    [],
  ],
  ["subscription", { status: "active" }, { status: "past_due" }, ["past_due"]],
  ["subscription", { status: "active" }, { status: "paused" }, ["paused"]],
  ["subscription", { status: "paused" }, { status: "active" }, ["resumed"]],
  [
    "subscription",
    { status: "active", plan_id: "small" },
    { status: "active", plan_id: "large" },
    ["plan_changed"],
  ],
  ["subscription", { status: "active", plan_id: null }, { status: "active", plan_id: "large" }, []],
  ["subscription", { status: "past_due" }, { status: "canceled" }, ["canceled"]],
  ["subscription", { status: "active" }, { status: "completed" }, ["completed"]],
  ["customer", null, { deleted_at: null }, ["created"]],
  ["customer", { deleted_at: null }, { deleted_at: "2026-01-01 00:00:00+00" }, ["deleted"]],
  ["customer", { deleted_at: "2026-01-01 00:00:00+00" }, { deleted_at: null }, []],
  ["transaction", null, { status: "pending" }, ["created"]],
  ["transaction", { status: "pending" }, { status: "succeeded" }, []],
];

test.each(cases)("%s: %j to %j is %j", (resource, before, after, kinds) => {
  expect(kindsOf(resource, { before, after })).toEqual(kinds.map((kind) => `${resource}.${kind}`));
});

test("every kind that a rule gives is in the vocabulary, and a resource reads the columns that its rules need", () => {
  const given = cases.flatMap(([resource, , , kinds]) =>
    kinds.map((kind) => `${resource}.${kind}`),
  );
  expect(changeKinds).toEqual(expect.arrayContaining(given));
  for (const [resource, before, after] of cases) {
    const { watched = [] } = mirrorResources.find(({ name }) => name === resource) ?? {};
    expect(watched).toEqual(expect.arrayContaining(Object.keys({ ...before, ...after })));
  }
});

describe("what a state tells once for ever", () => {
  const facts = (group: string, columns: Columns & { amount?: never }, content: object = {}) =>
    factsOf({ group, id: "object-1", json: JSON.stringify(content), columns }).map(
      ({ resource, id, kind, subject }) => `${kind} of ${resource} ${id} by ${subject}`,
    );

  test("is a dispute, and its outcome where a status names it", () => {
    expect(facts("order", { status: "chargeback" })).toEqual([
      "order.disputed of order object-1 by ",
    ]);
    expect(facts("order", { status: "chargeback_accepted" })).toHaveLength(2);
    expect(facts("order", { status: "chargeback_dismissed" }).at(1)).toContain("dispute_won");
    expect(facts("order", { status: "refunded" })).toEqual([]);
  });

  test("is a refund that succeeded and names its order", () => {
    const refund = { status: "succeeded", order_id: "order-1" };
    for (const group of ["transaction", "transaction.inline"]) {
      expect(facts(group, { type: "refund" }, refund)).toEqual([
        "order.refunded of order order-1 by object-1",
      ]);
    }
    expect(facts("transaction", { type: "refund" }, { ...refund, status: "failed" })).toEqual([]);
    expect(facts("transaction", { type: "refund" }, { ...refund, order_id: null })).toEqual([]);
    expect(facts("transaction", { type: "sale" }, refund)).toEqual([]);
  });
});
