import type { RunListener } from "../../app/run-listener.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import type { AlertContext } from "./alert-context.ts";
import { withIsolatedAlerts } from "./isolated-alerts.ts";
import { misdated } from "./rules/misdated.ts";
import { runWatch } from "./run-watch.ts";
import { assessRun } from "./rules/reconciliation.ts";

/** Turns reports of worker and reconciliation into alerts. */
export const alertListener = (alertContext: AlertContext): RunListener => ({
  tellWithin: (log, transaction) => withIsolatedAlerts(log, alertContext, transaction),
  runEnded: (deps, run) => assessRun(deps, alertContext, run),
  async healedByHand({ db, log }, { resource, id }) {
    try {
      await inTransaction(db, (trx) => runWatch(trx, alertContext, misdated));
    } catch (err) {
      log.warn({ err, resource, id }, "an object was healed, and its alert could not be ended");
    }
  },
});
