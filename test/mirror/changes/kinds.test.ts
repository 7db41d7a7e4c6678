import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { changeKinds, factsOf, kindsOf } from "../../../src/core/mirror/changes/kinds.ts";
import { mirrorResources } from "../../../src/core/mirror/resources.ts";
import type { Resource } from "../../../src/core/mirror/snapshot.ts";

type Columns = Record<string, string | null>;

/** The same of a subscription, each as `status cycle`. */
function rowsOfCycles(cycles: readonly [string, string, string[]][]): [Resource, Columns, Columns, string[]][] {
  const row = (text: string): Columns => {
    const [status = "", current_billing_cycle = ""] = text.split(" ");
    return { status, current_billing_cycle };
  };
  return cycles.map(([before, after, kinds]) => ["subscription", row(before), row(after), kinds]);
}

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
  ["order", { status: "failed", attempt_count: "1" }, { status: "failed", attempt_count: "2" }, ["failed"]],
  ["order", { status: "failed", attempt_count: null }, { status: "failed", attempt_count: null }, []],
  ["order", { status: "failed", attempt_count: null }, { status: "failed", attempt_count: "1" }, []],
  ["order", { status: "failed", attempt_count: null }, { status: "failed", attempt_count: "2" }, ["failed"]],
  ["order", { status: "pending" }, { status: "voided" }, ["voided"]],
  ["order", { status: "succeeded" }, { status: "refund_failed" }, []],
  // A status that the interface does not name may come before a payment or after one.
  ["order", { status: "authorized" }, { status: "succeeded" }, ["paid"]],
  ["order", { status: "settled" }, { status: "refunded" }, []],
  ["order", { status: "succeeded" }, { status: "settled" }, []],
  // The state is the same, so the row was wrong.
  ["order", { status: "failed", content_hash: "a" }, { status: "succeeded", content_hash: "a" }, []],
  ["order", { status: "pending", content_hash: "a" }, { status: "succeeded", content_hash: "b" }, ["paid"]],
  [
    "order",
    { status: "failed", attempt_count: "1", content_hash: "a" },
    { status: "failed", attempt_count: "2", content_hash: "a" },
    ["failed"],
  ],
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
  ...rowsOfCycles([
    ["past_due 1", "past_due 2", ["renewed", "recovered", "past_due"]],
    ["past_due 1", "paused 1", ["recovered", "paused"]],
    ["past_due 1", "canceled 2", ["renewed", "recovered", "canceled"]],
    ["active 1", "paused 2", ["renewed", "paused"]],
    ["active 1", "active 3", ["renewed"]],
    // The second cycle may be the one that was declined.
    ["active 1", "past_due 2", ["past_due"]],
    ["active 1", "past_due 3", ["renewed", "past_due"]],
    ["active 1", "canceled 2", ["canceled"]],
    ["active 1", "canceled 3", ["renewed", "canceled"]],
    ["paused 1", "active 2", ["resumed", "renewed"]],
    ["paused 1", "past_due 1", ["resumed", "past_due"]],
    ["paused 1", "completed 1", ["resumed", "completed"]],
    ["paused 1", "paused 2", ["resumed", "renewed", "paused"]],
    ["paused 1", "canceled 1", ["canceled"]],
    ["canceled 1", "active 1", ["resumed"]],
    ["completed 3", "active 4", ["resumed", "renewed"]],
    ["failed 0", "active 1", ["started"]],
    ["trialing 0", "active 1", ["started"]],
    ["grace 3", "active 3", []],
    ["active 2", "grace 2", []],
  ]),
  ["subscription", { status: "active" }, { status: "past_due" }, ["past_due"]],
  ["subscription", { status: "active" }, { status: "paused" }, ["paused"]],
  ["subscription", { status: "paused" }, { status: "active" }, ["resumed"]],
  ["subscription", { status: "active", plan_id: "small" }, { status: "active", plan_id: "large" }, ["plan_changed"]],
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
  const given = cases.flatMap(([resource, , , kinds]) => kinds.map((kind) => `${resource}.${kind}`));
  expect(changeKinds).toEqual(expect.arrayContaining(given));
  for (const [resource, before, after] of cases) {
    const { watched = [] } = mirrorResources.find(({ name }) => name === resource) ?? {};
    const columns = Object.keys({ ...before, ...after }).filter((name) => name !== "content_hash");
    expect(watched).toEqual(expect.arrayContaining(columns));
  }
});

describe("what a state tells once for ever", () => {
  const facts = (group: string, columns: Columns & { amount?: never }, content: object = {}) =>
    factsOf({ group, id: "object-1", json: JSON.stringify(content), columns }).map(
      ({ resource, id, kind, subject }) => `${kind} of ${resource} ${id} by ${subject}`,
    );

  test("is a dispute, and its outcome where a status names it", () => {
    expect(facts("order", { status: "chargeback" })).toEqual(["order.disputed of order object-1 by "]);
    expect(facts("order", { status: "chargeback_accepted" })).toHaveLength(2);
    expect(facts("order", { status: "chargeback_dismissed" }).at(1)).toContain("dispute_won");
    expect(facts("order", { status: "refunded" })).toEqual([]);
  });

  test("is nothing where a status has the name of something else", () => {
    for (const status of ["constructor", "__proto__", "toString"]) {
      expect(facts("order", { status })).toEqual([]);
      expect(facts("transaction", { type: "refund" }, { status, order_id: "order-1" })).toEqual([]);
    }
  });

  test("is a refund that succeeded or failed and names its order", () => {
    const refund = { status: "succeeded", order_id: "order-1" };
    for (const group of ["transaction", "transaction.inline"]) {
      expect(facts(group, { type: "refund" }, refund)).toEqual(["order.refunded of order order-1 by object-1"]);
    }
    expect(facts("transaction", { type: "refund" }, { ...refund, status: "failed" })).toEqual([
      "order.refund_failed of order order-1 by object-1",
    ]);
    expect(facts("transaction", { type: "refund" }, { ...refund, status: "pending" })).toEqual([]);
    expect(facts("transaction", { type: "refund" }, { ...refund, order_id: null })).toEqual([]);
    expect(facts("transaction", { type: "sale" }, refund)).toEqual([]);
  });
});

test("a refund is told with its amount, whatever its sign", () => {
  const content = JSON.stringify({ status: "succeeded", order_id: "order-1" });
  const refund = (amount: number | null) =>
    factsOf({
      group: "transaction",
      id: "refund-1",
      json: content,
      columns: { type: "refund", amount, currency: null },
    });
  expect(refund(-500)).toMatchObject([{ amount: 500, currency: null }]);
  expect(refund(null)).toMatchObject([{ amount: null }]);
});

describe("of a life that the interface allows", () => {
  /** Where each status may lead, and what happens then. */
  const next = {
    subscription: {
      "": [["failed"], ["active", "started"]],
      failed: [["canceled", "canceled"]],
      active: [
        ["active", "renewed"],
        ["past_due", "past_due"],
        ["paused", "paused"],
        ["canceled", "canceled"],
        ["completed", "renewed", "completed"],
      ],
      past_due: [
        ["past_due"],
        ["active", "renewed", "recovered"],
        ["completed", "renewed", "recovered", "completed"],
        ["canceled", "canceled"],
      ],
      paused: [
        ["active", "resumed"],
        ["canceled", "canceled"],
      ],
    },
    order: {
      "": [["pending"]],
      pending: [
        ["succeeded", "paid"],
        ["failed", "failed"],
      ],
      failed: [["failed"], ["succeeded", "paid"]],
      succeeded: [["partially_refunded"], ["refund_failed"], ["voided", "voided"], ["chargeback"]],
      partially_refunded: [["partially_refunded"], ["refunded"], ["refund_failed"], ["chargeback"]],
      refund_failed: [["refund_failed"], ["partially_refunded"], ["refunded"]],
      chargeback: [["chargeback_accepted"], ["chargeback_dismissed"]],
    },
  } as const;

  interface Life {
    rows: Columns[];
    /** What happened, in its order. */
    truth: string[];
  }

  /** A cycle is counted when it is charged, or when it is paid: the interface does not say. */
  function live(resource: "order" | "subscription", picks: readonly number[], isCountedWhenCharged: boolean): Life {
    const ways: Readonly<Record<string, readonly (readonly string[])[]>> = next[resource];
    const life: Life = { rows: [], truth: [`${resource}.created`] };
    let [status, cycle] = ["", 0];
    for (const pick of picks) {
      const possible = ways[status] ?? [];
      const [to = "", ...kinds] = possible[pick % possible.length] ?? [];
      if (to === "") break;
      const isPaid = kinds.includes("renewed") || kinds.includes("started");
      const isCharged = status !== "past_due" && (isPaid || to === "past_due");
      if (isCountedWhenCharged ? isCharged : isPaid) cycle++;
      status = to;
      life.rows.push({ status, current_billing_cycle: String(cycle), attempt_count: null });
      life.truth.push(...kinds.map((kind) => `${resource}.${kind}`));
    }
    return life;
  }

  const kindsAlong = (resource: Resource, rows: readonly Columns[]): string[] =>
    rows.flatMap((after, n) => kindsOf(resource, { before: rows[n - 1] ?? null, after }));

  /** Whether `some` are among `all` in the same order. */
  const isPartOf = (some: readonly string[], all: readonly string[]): boolean => {
    let found = 0;
    for (const kind of all) if (kind === some[found]) found++;
    return found === some.length;
  };

  test.each([
    ["order", false],
    ["subscription", false],
    ["subscription", true],
  ] as const)(
    "%s: whatever was not seen, only what happened is told, in its order, and how it ended (cycles counted when charged: %s)",
    (resource, isCountedWhenCharged) => {
      fc.assert(
        fc.property(
          fc.array(fc.nat(60), { minLength: 1, maxLength: 12 }),
          fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
          (picks, isSeen) => {
            const { rows, truth } = live(resource, picks, isCountedWhenCharged);
            const told = kindsAlong(
              resource,
              rows.filter((_, n) => n === rows.length - 1 || isSeen[n]),
            );
            expect(isPartOf(told, truth), `${told.join()} of ${truth.join()}`).toBe(true);
            const ending = `${resource}.${rows.at(-1)?.["status"]}`;
            if (truth.includes(ending)) expect(told).toContain(ending);
            if (!isCountedWhenCharged) expect(kindsAlong(resource, rows)).toEqual(truth);
          },
        ),
        { numRuns: 2_000 },
      );
    },
  );
});
