import type { Knex } from "knex";
import type { Log } from "../platform/log.ts";
import type { AlertDesk } from "./desk.ts";
import { endDeadEvents } from "./sweep/end-dead-events.ts";
import { describeAgain } from "./sweep/describe-again.ts";
import { escalate } from "./sweep/escalate.ts";
import { lookThroughInbox } from "./sweep/look-through-inbox.ts";
import { lookThroughStates } from "./sweep/look-through-states.ts";
import { tellNearLastRetries } from "./sweep/near-last-retries.ts";
import { sendDigests } from "./sweep/send-digests.ts";
import { tellStorms } from "./sweep/tell-storms.ts";
import { tidyUp } from "./sweep/tidy-up.ts";
import { watchChargebackRatio } from "./sweep/watch-chargeback-ratio.ts";
import { watchSignatures } from "./sweep/watch-signatures.ts";
import { watchSilence } from "./sweep/watch-silence.ts";
import { learnUsualDeclines } from "./usual-declines.ts";

/** Held by the one sweep that works now, for the length of each of its transactions. Any fixed number of our own. */
const sweepLock = 7_255_011_936;

type Part = (trx: Knex.Transaction, desk: AlertDesk) => Promise<{ more: boolean } | void>;

const parts: Readonly<Record<string, Part>> = {
  lookThroughInbox,
  lookThroughStates,
  describeAgain,
  watchSilence,
  watchSignatures,
  endDeadEvents,
  tellNearLastRetries,
  tellStorms,
  learnUsualDeclines,
  sendDigests,
  escalate,
  watchChargebackRatio,
  tidyUp,
};

/**
 * Does what time alone makes due: silence, retries that are near, digests, escalation, the lists and
 * ends of storms. A transaction
 * each, so that one that fails holds up no other; where another worker sweeps, it does nothing. Idempotent. Gives back
 * whether there is more to do at once.
 */
export async function sweepAlerts(
  { db, log }: { db: Knex; log: Log },
  desk: AlertDesk,
): Promise<{ more: boolean }> {
  let more = false;
  for (const [part, run] of Object.entries(parts)) {
    try {
      const result = await db.transaction(async (trx) => {
        const { rows } = await trx.raw<{ rows: { held: boolean }[] }>(
          "select pg_try_advisory_xact_lock(?) as held",
          [sweepLock],
        );
        return rows[0]?.held === true ? await run(trx, desk) : undefined;
      });
      more ||= result?.more === true;
    } catch (err) {
      log.error({ err, part }, "a part of the alerts' sweep failed");
    }
  }
  return { more };
}
