import { eventually } from "../support/eventually.ts";
import { everyRow } from "../support/everything-stored.ts";
import { type HostileService, never } from "./hostile-service.ts";
import { startRun } from "./killed-runs.ts";
import type { ReconcileStand } from "./reconcile-stand.ts";

/**
 * Stops the process of a run between two pages (SIGSTOP), lets another one take over to its end, and wakes the first.
 * Gives back how that one ended, and the tables that changed once it was awake.
 */
export async function pauseAndReplace(
  service: HostileService,
  { database }: Pick<ReconcileStand, "database">,
  takeOver: () => Promise<void>,
): Promise<{ code: number | null; err: string; changed: string[] }> {
  const { db } = database;
  const run = startRun(service, database.url);
  // After some pages the service answers no more, so that the run is between two transactions.
  service.quirks.instead = ({ list, nth }) => (list === "orders" && nth >= 8 ? { body: never } : undefined);
  await eventually("the run waits for a page", async () => {
    const [{ pages }] = (await db("reconcile.coverage").sum({ pages: "pages" })) as [{ pages: string | null }];
    const asked = service.requests.some(({ list, nth }) => list === "orders" && nth >= 8);
    // The first request only finds the size of a page.
    return asked && Number(pages) === service.requests.length - 2;
  });
  run.end("SIGSTOP");
  try {
    delete service.quirks.instead;
    await takeOver();
    const before = await everyRow(db);
    service.breakConnections();
    run.end("SIGCONT");
    const { code, err } = await run.exited;
    const after = await everyRow(db);
    const changed = [...after].flatMap(([table, rows]) => (rows === before.get(table) ? [] : [table]));
    return { code, err, changed };
  } finally {
    run.end("SIGKILL");
  }
}
