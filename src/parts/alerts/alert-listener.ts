import type { Knex } from "knex";
import type { Listener } from "../../core/mirror/listener.ts";
import type { Log } from "../../platform/log.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import type { AlertContext } from "./alert-context.ts";
import { withIsolatedAlerts } from "./isolated-alerts.ts";
import { misdated } from "./rules/misdated.ts";
import { runWatch } from "./run-watch.ts";
import { type RunOutcome, assessRun } from "./rules/reconciliation.ts";

interface AlertListener extends Listener {
  runEnded(deps: ToldDeps, run: RunOutcome): Promise<void>;
  healedByHand(deps: ToldDeps, object: { resource: string; id: string }, at: Date): Promise<void>;
}

interface ToldDeps {
  db: Knex;
  log: Log;
}

/** Turns reports of worker and reconciliation into alerts. */
export const alertListener = (alertContext: AlertContext): AlertListener => ({
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
