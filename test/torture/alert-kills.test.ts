import { expect, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { sendWithKills } from "../alerts/outbox/killed-senders.ts";
import { createTestDatabase } from "../support/database.ts";

test("a sender that is killed fifty times between sending and marking misses nothing", async () => {
  const database = await createTestDatabase();
  try {
    const report = await sendWithKills(database, { kills: 50, random: seededRandom("torture") });
    const { queued, came, heldAtKills } = report;
    console.log(JSON.stringify({ alerts: queued.length, sent: came.length, killed: heldAtKills }));
    expect(heldAtKills).toBe(50);
    expect(new Set(came)).toEqual(new Set(queued));
    expect(came.length).toBeGreaterThanOrEqual(queued.length + 50);
  } finally {
    await database.destroy();
  }
}, 900_000);
