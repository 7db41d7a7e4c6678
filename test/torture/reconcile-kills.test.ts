import { expect, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { startHostileService } from "../reconcile/hostile-service.ts";
import { runWithKills } from "../reconcile/killed-runs.ts";
import { none } from "../reconcile/none.ts";
import { createReconcileStand } from "../reconcile/reconcile-stand.ts";

test("a run that is killed thirty times is gone on with, and ends as one that was not", async () => {
  const orders = 20_000;
  const service = await startHostileService(orders);
  service.quirks = { maxLimit: 25 };
  const stand = await createReconcileStand(service.url);
  try {
    const random = seededRandom("torture");
    const { code, result } = await runWithKills(service, stand.database.url, { kills: 30, random });
    expect(code).toBe(0);
    expect(result).toMatchObject({ complete: true, left: 0, run: 1 });
    expect(result).toMatchObject({ rows: { order: orders, transaction: orders } });
    const second = await stand.run();
    expect(second.totals).toMatchObject({ healed: none, left: none, confirmed: none });
  } finally {
    await stand.close();
    await service.close();
  }
}, 900_000);
