import { expect, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { startHostileService } from "./hostile-service.ts";
import { runWithKills } from "./killed-runs.ts";
import { none } from "./none.ts";
import { createReconcileStand } from "./reconcile-stand.ts";

test("a run that is killed three times is gone on with, and ends as one that was not", async () => {
  const service = await startHostileService(1_500);
  service.quirks = { maxLimit: 25 };
  const stand = await createReconcileStand(service.url);
  try {
    const random = seededRandom("kills");
    const { code, result } = await runWithKills(service, stand.database.url, { kills: 3, random });
    expect(code).toBe(0);
    expect(result).toMatchObject({
      complete: true,
      left: 0,
      run: 1,
      rows: { order: 1_500, transaction: 1_500 },
    });
    const runs = await stand.database.db("reconcile.runs").select("id", "state");
    expect(runs).toEqual([{ id: "1", state: "complete" }]);
    const [sums] = await stand.database.db("reconcile.daily_sums").sum({ n: "n", minor: "sum_minor" });
    expect(sums).toEqual({ n: "1500", minor: String(1_500 * 1_000 + (1_499 * 1_500) / 2) });
    const second = await stand.run();
    expect(second.totals).toMatchObject({ healed: none, left: none, confirmed: none });
  } finally {
    await stand.close();
    await service.close();
  }
}, 300_000);
