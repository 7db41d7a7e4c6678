import { expect, test } from "vitest";
import { useTestDatabase } from "../support/use-database.ts";
import { countsByRule, flawsOf, liveThroughMonth } from "./billing-month.ts";

const database = useTestDatabase();

/** A twentieth of the month of test/torture/alert-month.test.ts, with as many nights. */
test("a month of 500 renewals with 8 % declines is under 80 messages, each with something to do", async () => {
  const { declined, chat, pager } = await liveThroughMonth(database.db, {
    renewals: 500,
    days: 30,
    declined: 0.08,
    chargebacks: 0.006,
    stepHours: 8,
    seed: "month",
  });
  console.log(JSON.stringify({ declined, chat: chat.length, ...countsByRule(chat) }, null, 1));
  expect(declined).toBeGreaterThan(30);
  expect(chat.length).toBeLessThan(80);
  expect(flawsOf(chat)).toEqual([]);
  expect(Object.keys(countsByRule(chat))).toEqual(
    expect.arrayContaining([
      "dunning_renewal attempt",
      "digest digest",
      "chargeback opened",
      "event_unknown opened",
      "reconcile_missing opened",
      "reconcile_incomplete opened",
    ]),
  );
  const woken = pager.filter(({ action }) => action === "trigger");
  expect(woken.every(({ stage }) => stage.startsWith("escalated:"))).toBe(true);
  const wakes = new Set(woken.map(({ rule }) => rule));
  expect([...wakes].sort()).toEqual(["chargeback", "dunning_renewal", "reconcile_missing"]);
  expect(woken.length).toBeLessThan(30);
}, 600_000);
