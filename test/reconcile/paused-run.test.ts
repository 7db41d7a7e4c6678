import { expect, test } from "vitest";
import { startHostileService } from "./hostile-service.ts";
import { pauseAndReplace } from "./paused-runs.ts";
import { createReconcileStand } from "./reconcile-stand.ts";

test("a run that is stopped while another one takes over writes nothing when it wakes, and says so", async () => {
  const service = await startHostileService(300);
  service.quirks = { maxLimit: 25 };
  const stand = await createReconcileStand(service.url);
  try {
    const { code, err, changed } = await pauseAndReplace(service, stand, async () => {
      const { db } = stand.database;
      await db("reconcile.leases").update({ expires_at: db.fn.now() });
      expect(await stand.run()).toMatchObject({ complete: true, run: { id: 1 } });
    });
    expect(changed).toEqual([]);
    expect(err).toMatch(/Process \d+ on .* took over the reconciliation of this database at /);
    expect(code).toBe(4);
  } finally {
    await stand.close();
    await service.close();
  }
});
