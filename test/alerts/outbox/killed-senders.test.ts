import { expect, test } from "vitest";
import { seededRandom } from "../../../src/platform/random.ts";
import { createTestDatabase } from "../../support/database.ts";
import { sendWithKills } from "./killed-senders.ts";

test("a sender that is killed five times between sending and marking misses nothing; repeats bear the same key", async () => {
  const database = await createTestDatabase();
  try {
    const report = await sendWithKills(database, { kills: 5, random: seededRandom("kills") });
    expect(report.heldAtKills).toBe(5);
    expect(new Set(report.came)).toEqual(new Set(report.queued));
    expect(report.came.length).toBeGreaterThanOrEqual(report.queued.length + 5);
  } finally {
    await database.destroy();
  }
});
