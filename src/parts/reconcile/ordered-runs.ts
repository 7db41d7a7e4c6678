import { TallyhookError } from "../../platform/errors.ts";
import { runEvery } from "../../platform/run-every.ts";
import { type ReconcileDeps, type ReconcileRequest, reconcile } from "./reconcile.ts";
import { LeaseLostError } from "./runs/run-lease.ts";
import { type RunOrder, beat, beatEveryMs, endOrder, leave, openOrder, takeOrder } from "./runs/run-orders.ts";
import type { ReconcileSettings } from "./settings.ts";

const lookEveryMs = 2_000;

/**
 * Executes the runs that people order, one at a time, until closed, and sends heartbeats. Any number of workers may
 * poll: the lease and the run's key keep an order to one run. A run that a stopping worker interrupts is resumed by the
 * next one; an order whose run is impossible ends as failed, with the reason.
 */
export function takeOrders(deps: ReconcileDeps, settings: ReconcileSettings): { close(): Promise<void> } {
  const { db, log } = deps;
  const stopping = new AbortController();
  const beats = runEvery({ log, name: "order taker" }, beatEveryMs, async () => {
    await beat(db);
    return { more: false };
  });
  const orders = runEvery({ log, name: "ordered runs" }, lookEveryMs, async () => {
    const order = await openOrder(db);
    if (order !== null) await doOrder(deps, settings, order, stopping.signal);
    return { more: false };
  });
  return {
    async close() {
      stopping.abort(new Error("the worker is stopping"));
      await Promise.all([beats.close(), orders.close()]);
      await leave(db);
    },
  };
}

/**
 * One poll of an order: executes its run, unless another process is reconciling. Throws nothing about the run itself.
 */
async function doOrder(
  deps: ReconcileDeps,
  settings: ReconcileSettings,
  order: RunOrder,
  signal: AbortSignal,
): Promise<void> {
  const { db, log } = deps;
  const { id, kind, runKey, reportOnly } = order;
  try {
    const asked = { ...settings, reportOnly: reportOnly || settings.reportOnly };
    const outcome = await reconcile(deps, asked, requestOf(order), {
      signal,
      async before(trx) {
        if (!(await takeOrder(trx, id))) throw new OrderEndedError(`order ${id} has ended`);
      },
    });
    if (outcome.kind === "busy" || outcome.kind === "put_off") return;
    // The order stays open: its run continues when the service accepts calls again.
    if (outcome.kind === "done" && outcome.result.resumeAfter !== null) return;
    await endOrder(db, id, { outcome: "done" });
    log.info({ order: id, kind, runKey }, "an ordered run is done");
  } catch (err) {
    // The order stays open: the next worker resumes its run.
    if (signal.aborted || err instanceof LeaseLostError) return;
    if (err instanceof OrderEndedError) {
      log.info({ order: id, kind, runKey }, "an order was taken back before its run began");
      return;
    }
    log.error({ err, order: id, kind, runKey }, "an ordered run failed");
    const error = err instanceof TallyhookError ? err.message : "an unexpected error: the worker's log has it";
    await endOrder(db, id, { outcome: "failed", error });
  }
}

/** The order was withdrawn after it was read here. */
class OrderEndedError extends Error {}

const requestOf = ({ kind, runKey, rangeFrom, rangeTo }: RunOrder): ReconcileRequest => ({
  kind,
  runKey,
  ...(rangeFrom === null ? {} : { rangeFrom }),
  ...(rangeTo === null ? {} : { rangeTo }),
});
