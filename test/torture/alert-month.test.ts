import { expect, test } from "vitest";
import { countsByRule, flawsOf, liveThroughMonth } from "../alerts/billing-month.ts";
import { createTestDatabase } from "../support/database.ts";

test("a month of 10,000 renewals with 8 % declines is under 600 messages, each with something to do", async () => {
  const database = await createTestDatabase();
  try {
    const { declined, chat, pager } = await liveThroughMonth(database.db, {
      renewals: 10_000,
      days: 30,
      declined: 0.08,
      chargebacks: 0.001,
      stepHours: 2,
      seed: "month",
    });
    console.log(JSON.stringify({ declined, chat: chat.length, ...countsByRule(chat) }, null, 1));
    console.log(JSON.stringify({ pager: pager.length, ...countsByRule(pager) }, null, 1));
    expect(declined).toBeGreaterThan(750);
    expect(chat.length).toBeLessThan(600);
    expect(flawsOf(chat)).toEqual([]);
    expect(countsByRule(chat)).toMatchObject({ "silence_events opened": 1 });
  } finally {
    await database.destroy();
  }
}, 3_600_000);
