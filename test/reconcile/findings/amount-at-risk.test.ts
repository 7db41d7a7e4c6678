import { expect, test } from "vitest";
import { amountAtRisk } from "../../../src/parts/reconcile/findings/drift-findings.ts";

const stored = (amount: number) => ({
  resource: "transaction" as const,
  id: "t-1",
  stored: { amount, currency: "usd" },
  groups: [],
});

test("is the distance of the two amounts, exact to the minor unit", () => {
  const service = 9_007_199_254_740_991;
  const differences = [{ field: "amount", service, mirror: -2 }];
  expect(amountAtRisk(stored(-2), differences)).toEqual({
    amountMinor: 9_007_199_254_740_993n,
    currency: "usd",
  });
});

test("fits in its column, whatever a row was spoiled to", () => {
  const smallest = Number(-(2n ** 63n));
  const differences = [{ field: "amount", service: 5, mirror: smallest }];
  expect(amountAtRisk(stored(smallest), differences).amountMinor).toBe(2n ** 63n - 1n);
});
