import type { Knex } from "knex";
import { mirrorResources, resourceNamed } from "../../../core/mirror/resources.ts";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import type { Clock } from "../../../platform/clock.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { walksEverything } from "../coverage/ledger.ts";
import { andNotAbsent, mirrorTableOf, slicedResources } from "../coverage/slice.ts";
import type { Run } from "../runs/runs.ts";

/** Queues rechecks for objects that no slice of the run has shown, or can show. Does nothing for a range. */
export async function recheckUnread(
  { db, serviceClock }: { db: Knex; serviceClock: Clock },
  { run: { id: run, kind, t0 }, failedSince }: { run: Run; failedSince: Date },
): Promise<void> {
  if (kind === "range") return;
  const noticedAt = serviceClock.now();
  for (const resource of slicedResources) {
    await inTransaction(db, (trx) => recheckOutOfTime(trx, { run, t0, noticedAt }, resource));
  }
  if (await walksEverything(db, run)) return;
  for (const resource of openResources) {
    await inTransaction(db, (trx) => recheckUnseenOpenItems(trx, { run, failedSince, noticedAt }, resource));
  }
}

/** The resources with objects that can change without a new object to reveal it. */
export const openResources: readonly Resource[] = mirrorResources.flatMap(({ name, openCondition }) =>
  openCondition === undefined ? [] : [name],
);

const openWhere = (resource: Resource): string => resourceNamed(resource).openCondition ?? "false";

/** Notes which of the objects just read are open items in the mirror. One statement; idempotent. */
export async function recordReadOpenItems(
  db: Knex,
  { run, failedSince }: { run: number; failedSince: Date },
  { resource, ids }: { resource: Resource; ids: readonly string[] },
): Promise<void> {
  if (ids.length === 0) return;
  await db.raw(
    `insert into reconcile.seen (run, resource, id)
     select :run, :resource, m.id from mirror.${mirrorTableOf(resource)} m
     where m.id = any(:ids) and ${openWhere(resource)}
     on conflict do nothing`,
    { run, resource, ids: [...ids], failedSince },
  );
}

/**
 * Queues a recheck of every open item of the mirror that the run has not read. This finds items that left the list of
 * their old status and appear in no other. One statement; idempotent.
 */
async function recheckUnseenOpenItems(
  db: Knex,
  { run, failedSince, noticedAt }: { run: number; failedSince: Date; noticedAt: Date },
  resource: Resource,
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into reconcile.doubts (run, resource, id, why, due_at, noticed_at)
     select :run, :resource, m.id, 'open_item', :noticedAt, :noticedAt
     from mirror.${mirrorTableOf(resource)} m
     where ${openWhere(resource)} and not exists (
       select from reconcile.seen s where s.run = :run and s.resource = :resource and s.id = m.id)
     on conflict do nothing`,
    { run, resource, failedSince, noticedAt },
  );
  return rowCount;
}

/** The service's clocks that date objects may be ahead of the one that dates its answers. */
const aheadMs = 60 * 60_000;

/**
 * Queues rechecks of rows that no slice can show: those without a creation time, which the lists should have given them
 * by now (they last changed before T0, so they are not new), and those created in the future. Leaves out objects known
 * to be absent. One statement; idempotent; returns the number of rows.
 */
async function recheckOutOfTime(
  db: Knex,
  { run, t0, noticedAt }: { run: number; t0: Date; noticedAt: Date },
  resource: Resource,
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into reconcile.doubts (run, resource, id, why, due_at, noticed_at)
     select :run, :resource, m.id, 'out_of_time', :noticedAt, :noticedAt from mirror.${mirrorTableOf(resource)} m
     where (m.created_at is null and coalesce(m.source_updated_at < :t0, true) or m.created_at > :until)
       ${andNotAbsent(resource)}
     on conflict do nothing`,
    { run, resource, t0, noticedAt, until: new Date(noticedAt.getTime() + aheadMs) },
  );
  return rowCount;
}
