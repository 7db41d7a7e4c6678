import type { Knex } from "knex";
import type { Log } from "../../platform/log.ts";
import { type TransactionLimits, limitTransaction, tryLock } from "../../platform/postgres/transactions.ts";
import type { AlertContext } from "./alert-context.ts";
import { escalate } from "./escalation.ts";
import { reportNearLastRetries } from "./rules/declines.ts";
import { sendDigests } from "./rules/digests.ts";
import { type InboxQuestions, endDeadEvents, scanInbox } from "./rules/events.ts";
import { scanStates } from "./rules/unknown-values.ts";
import { type WatchQuestions, watches } from "./rules/watches.ts";
import { keepWatch, runWatch } from "./run-watch.ts";
import { reportStorms } from "./storms/list-storms.ts";
import { learnUsualDeclines } from "./storms/storms.ts";
import { describeAgain } from "./undescribed.ts";

/** The lock of the active sweep, held for each of its transactions. An arbitrary fixed number. */
const sweepLock = 7_255_011_936;

/** A sweep's readings from core and other parts, which are passed in. */
export type SweepQuestions = InboxQuestions & WatchQuestions;

type Part = (
  trx: Knex.Transaction,
  alertContext: AlertContext,
  questions: SweepQuestions,
) => Promise<{ more: boolean } | void>;

const parts: Readonly<Record<string, Part>> = {
  scanInbox,
  scanStates,
  describeAgain,
  keepWatch,
  ...Object.fromEntries(
    watches.map((watch): [string, Part] => [
      watch.rule,
      (trx, alertContext, questions) => runWatch(trx, alertContext, watch, questions),
    ]),
  ),
  endDeadEvents,
  reportNearLastRetries,
  reportStorms,
  learnUsualDeclines,
  sendDigests,
  escalate,
  forgetWorkers,
};

/** A process that is stopped in a part of its sweep leaves the turn to the others after it. */
const partLimits: TransactionLimits = { statementMs: 60_000, lockMs: null, transactionMs: 120_000 };

/**
 * Runs everything that time alone makes due: absences, near retries, digests, escalation, the lists and ends of storms.
 * Each has its own transaction, so that one that fails does not delay the others. Does nothing while another worker
 * sweeps. Idempotent. Returns whether there is more to do immediately.
 */
export async function sweepAlerts(
  { db, log, ...questions }: { db: Knex; log: Log } & SweepQuestions,
  alertContext: AlertContext,
  limits: TransactionLimits = partLimits,
): Promise<{ more: boolean }> {
  let more = false;
  for (const [part, run] of Object.entries(parts)) {
    try {
      const result = await db.transaction(async (trx) => {
        await limitTransaction(trx, limits);
        const isOurs = await tryLock(trx, sweepLock);
        return isOurs ? await run(trx, alertContext, questions) : undefined;
      });
      more ||= result?.more === true;
    } catch (err) {
      log.error({ err, part }, "a part of the alerts' sweep failed");
    }
  }
  return { more };
}

/** Deletes the heartbeats of workers that were missed for an hour. */
async function forgetWorkers(trx: Knex.Transaction): Promise<void> {
  await trx("alerts.heartbeats")
    .whereRaw("starts_with(name, 'worker') and beat_at < now() - interval '1 hour'")
    .delete();
}
