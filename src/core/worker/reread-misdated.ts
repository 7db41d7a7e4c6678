import type { Knex } from "knex";
import { requestRefetches } from "../inbox/refetch.ts";
import { takeMisdated } from "../mirror/misdated.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import type { ScheduledTask } from "./scheduled-tasks.ts";

/** A read takes a call of the service, so they are spread over several runs. */
const mostReads = 500;

/**
 * Orders, every hour, a read of objects dated in the future: once the clock is right again, at the service or here, the
 * read ends the fault for all of them without manual work.
 */
export const rereadMisdated = (db: Knex): ScheduledTask => ({
  schedule: { everyMs: 3_600_000 },
  run: () =>
    inTransaction(db, async (trx) => {
      const objects = await takeMisdated(trx, { limit: mostReads });
      await requestRefetches(
        trx,
        objects.map((object) => ({ ...object, reason: "unbelieved" as const, notBefore: null })),
      );
    }),
});
