import type { Knex } from "knex";
import { listOrders } from "../../../core/contract/resources/orders.ts";
import type { HeldRecipient, Runtime, SettledByPart } from "../../../app/runtime.ts";
import { skipLostChanges } from "../../../core/mirror/changes/feed-partitions.ts";
import { skipLostEvents } from "../../../core/inbox/partitions.ts";
import { recordRestore } from "../../../core/mirror/restores.ts";
import { recordOf } from "../../../app/people/act.ts";
import type { Actor } from "../../../app/people/audit.ts";
import { databaseNow } from "../../../platform/postgres/database-clock.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { endRestore } from "../../../app/open-restore.ts";
import { eraseCustomer } from "../../../app/erase-customer.ts";

/** Facts about a restored database from outside of it. */
export interface RestoredFrom {
  /** The moment of the backup. */
  takenAt: Date;
  /** When the lost system last worked. */
  ranUntil: Date;
  actor: Actor;
  /** Customers known to be erased by the lost system. */
  erased: readonly string[];
}

export interface Settled {
  recipients: HeldRecipient[];
  messages: number;
  digestItems: number;
  /** Customers who were erased again. */
  erasedAgain: string[];
  /** False: the service did not answer, and its clock was taken for this machine's. */
  isServiceAsked: boolean;
}

/** So many ids are left out, which the lost database may have given to something else. */
const lostIds = 1_000_000;

/**
 * Keeps a restored database from repeating the lost system: its messages are not sent again, its numbers are not
 * reused, and the people it erased are erased again. Call it before any process of the system starts. Idempotent but
 * for the numbers. The act is no definition of the frame, whose doors open a database that is in use: this one may not
 * be, until the record of the act is written.
 */
export async function settleRestored(
  runtime: Runtime,
  db: Knex,
  { takenAt, ranUntil, actor, erased }: RestoredFrom,
): Promise<Settled> {
  const aheadMs = await serviceAheadMs(runtime);
  const now = await databaseNow(db);
  const told = await inTransaction(db, async (trx) => {
    const serviceRanUntil = new Date(ranUntil.getTime() + (aheadMs ?? 0));
    await recordRestore(trx, { takenAt, ranUntil, serviceRanUntil, by: actor.name });
    await skipLostEvents(trx, { since: takenAt, now });
    await skipLostChanges(trx, { since: takenAt, now });
    await skipLostIds(trx);
    const byParts: SettledByPart[] = [];
    for (const part of runtime.parts) byParts.push((await part.settle?.(trx, runtime, ranUntil)) ?? {});
    const after = { taken_at: takenAt, ran_until: ranUntil };
    await recordOf({ name: "database.restored" }, { actor })(trx, { after });
    await endRestore(trx);
    return {
      recipients: byParts.flatMap(({ recipients = [] }) => recipients),
      messages: byParts.reduce((all, { messages = 0 }) => all + messages, 0),
      digestItems: byParts.reduce((all, { digestItems = 0 }) => all + digestItems, 0),
    };
  });
  const known = new Set(await db("mirror.erasures").pluck<string[]>("customer_id"));
  const erasedAgain = [...new Set(erased)].filter((id) => !known.has(id)).sort();
  const reason = "erased by the system that the database was restored in place of";
  for (const customer of erasedAgain) {
    await eraseCustomer({ db, config: runtime.config, parts: runtime.parts }, { actor, input: { customer, reason } });
  }
  return { ...told, erasedAgain, isServiceAsked: aheadMs !== null };
}

/** How far the service's clock is ahead of this machine's, as a sandbox's can be; null where it does not answer. */
async function serviceAheadMs(runtime: Runtime): Promise<number | null> {
  const { serviceClock, wallClock } = runtime;
  try {
    await runtime
      .serviceClient()
      .get(listOrders, { query: { limit: "1" } }, { priority: "walk", signal: AbortSignal.timeout(askedWithinMs) });
  } catch {
    return null;
  }
  const aheadMs = serviceClock.now().getTime() - wallClock.now().getTime();
  // `Date` has whole seconds.
  return Math.abs(aheadMs) < 2_000 ? 0 : aheadMs;
}

const askedWithinMs = 10_000;

/** Numbers of the inbox and of the feed have partitions, so their rooms move them. */
async function skipLostIds(trx: Knex.Transaction): Promise<void> {
  await trx.raw(
    `select setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 1) + ?)
     from pg_sequences
     where schemaname in ('mirror', 'reconcile', 'reports', 'alerts', 'people')`,
    [lostIds],
  );
}
