import { expect, test } from "vitest";
import { startHostileService } from "../../reconcile/hostile-service.ts";
import { startRun } from "../../reconcile/killed-runs.ts";
import { none } from "../../reconcile/none.ts";
import { pauseAndReplace } from "../../reconcile/paused-runs.ts";
import { createReconcileStand } from "../../reconcile/reconcile-stand.ts";

test.each([1, 2])(
  "a run that is stopped for longer than its lease is replaced by another process, and writes nothing when it wakes (%i)",
  async () => {
    const service = await startHostileService(3_000);
    service.quirks = { maxLimit: 25 };
    const stand = await createReconcileStand(service.url);
    try {
      const { code, err, changed } = await pauseAndReplace(service, stand, async () => {
        // While its lease lasts: its process is alive, though it does not move. To start a process may take longer.
        const { db } = stand.database;
        const ends = await db("reconcile.leases").first<{ at: string }>(db.raw("expires_at::text as at"));
        await db("reconcile.leases").update({ expires_at: db.raw("now() + interval '1 hour'") });
        const busy = await startRun(service, stand.database.url).exited;
        expect(busy).toMatchObject({ code: 4 });
        expect(busy.err).toContain("Another process is reconciling this database");
        // Then it ends as it would have, and the run is replaced.
        await db("reconcile.leases").update({ expires_at: ends.at });
        for (let tries = 0; tries < 100; tries++) {
          const next = await startRun(service, stand.database.url).exited;
          if (next.code === 4) continue;
          expect(next.code).toBe(0);
          expect(JSON.parse(next.out)).toMatchObject({ complete: true, left: 0, run: 1 });
          return;
        }
        throw new Error("nobody took over");
      });
      expect(changed).toEqual([]);
      expect(err).toContain("took over the reconciliation of this database");
      expect(code).toBe(4);
      const second = await stand.run();
      expect(second.totals).toMatchObject({ healed: none, left: none, confirmed: none });
    } finally {
      await stand.close();
      await service.close();
    }
  },
);
