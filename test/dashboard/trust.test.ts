import { expect, test } from "vitest";
import { trustOf } from "../../src/parts/reconcile/pages/trust.ts";
import type { ListProof } from "../../src/parts/reconcile/coverage/proof.ts";

const now = new Date("2026-11-22T12:00:00Z");
const proved = (more: Partial<ListProof> = {}): ListProof => ({
  resource: "order",
  provedUntil: now,
  lastProved: now,
  gaps: [],
  isOutdated: false,
  aheadMs: 0,
  ...more,
});
const trust = (...proofs: ListProof[]) => trustOf({ proofs, open: [], now, timeZone: "UTC" });

test("a proof that is a minute ahead of this machine's clock is as good as any", () => {
  expect(trust(proved({ aheadMs: 60_000 }))).toMatchObject({ tone: "good", reasons: [] });
});

test("a proof from the future is doubted, and says by how much the clocks disagree and what to do", () => {
  const { tone, headline, lists, reasons } = trust(
    proved({ aheadMs: 2 * 3_600_000 }),
    proved({ resource: "customer" }),
  );
  expect(tone).toBe("warn");
  expect(headline.markup).toContain("Not certain: the clocks disagree by 2 hours");
  expect(lists.map((list) => list.tone)).toEqual(["warn", "good"]);
  expect(lists[0]?.sentence.markup).toContain("2026-11-22 14:00");
  expect(lists[0]?.sentence.markup).toContain("node src/bin/tallyhook.js doctor");
  expect(reasons).toEqual([
    {
      text:
        "Orders: the clocks of the service and of this machine disagree by 2 hours; " +
        '"node src/bin/tallyhook.js doctor" compares them.',
      path: "/reconciliation",
      next: "See the gap",
    },
  ]);
});
