import { afterAll, beforeAll, beforeEach } from "vitest";
import { type HostileService, startHostileService } from "./hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "./reconcile-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";

/** A service and a mirror of it, for the tests of a file or of a block: before each, one run has read everything. */
export function useWalkedService(): {
  readonly service: HostileService;
  readonly stand: ReconcileStand;
} {
  let made: { service: HostileService; stand: ReconcileStand } | undefined;
  const ready = () => {
    if (made === undefined) throw new Error("The service is not there before the first test.");
    return made;
  };
  beforeAll(async () => {
    const service = await startHostileService();
    made = { service, stand: await createReconcileStand(service.url) };
  });
  afterAll(async () => {
    await made?.stand.close();
    await made?.service.close();
  });
  beforeEach(async () => {
    const { stand } = ready();
    await emptyTables(stand.database.db, ["reconcile.runs"]);
    await stand.run();
  });
  return {
    get service() {
      return ready().service;
    },
    get stand() {
      return ready().stand;
    },
  };
}
