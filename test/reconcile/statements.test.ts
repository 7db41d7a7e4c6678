import { expect, test } from "vitest";
import { statementsOf } from "../support/statements-of.ts";
import { startHostileService } from "./hostile-service.ts";
import { createReconcileStand } from "./reconcile-stand.ts";

test("the lease is proved once a transaction, and ten pages without a change share one", async () => {
  const service = await startHostileService(120);
  service.quirks = { maxLimit: 4 };
  const stand = await createReconcileStand(service.url);
  try {
    await stand.run();
    let pages = 0;
    const statements = await statementsOf(stand.database.db, async () => {
      ({
        totals: { pages },
      } = await stand.run());
    });
    const having = (pattern: RegExp) => statements.filter((sql) => pattern.test(sql)).length;
    const proofs = having(/for key share/);
    expect(pages).toBeGreaterThan(60);
    // One that asks for an isolation level only reads.
    expect(proofs).toBe(having(/^begin;$/i));
    // The others begin and end the run, whatever its length.
    const checkpoints = having(/^update "reconcile"."coverage"/);
    expect(checkpoints).toBeLessThan(pages / 10 + 5);
    expect(proofs - checkpoints).toBeLessThan(20);
  } finally {
    await stand.close();
    await service.close();
  }
});
