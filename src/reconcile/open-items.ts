import type { Knex } from "knex";
import type { Resource } from "../mirror/observation.ts";
import { mirrorTableOf } from "./mirror-tables.ts";

/**
 * What may still change without a new object that would show it, as a condition on a row of the mirror. Bound is the
 * time since which a failed order counts.
 */
const openWhere: Readonly<Record<Resource, string>> = {
  order: `(m.status in ('pending', 'chargeback', 'refund_failed') or (m.status = 'failed' and m.created_at >= :failedSince))`,
  transaction: `(m.status in ('pending', 'in_progress', 'chargeback') or (m.type = 'refund' and m.status = 'failed'))`,
  subscription: `m.status in ('active', 'paused', 'past_due')`,
  customer: "false",
};

/** Notes which of the objects that were just read are open items. One statement; idempotent. */
export async function noteSeenOpenItems(
  db: Knex,
  { run, failedSince }: { run: number; failedSince: Date },
  { resource, ids }: { resource: Resource; ids: readonly string[] },
): Promise<void> {
  if (ids.length === 0 || resource === "customer") return;
  await db.raw(
    `insert into reconcile.seen (run, resource, id)
     select :run, :resource, m.id from mirror.${mirrorTableOf[resource]} m
     where m.id = any(:ids) and ${openWhere[resource]}
     on conflict do nothing`,
    { run, resource, ids: [...ids], failedSince },
  );
}

/**
 * Doubts every open item of the mirror that the run has not read: the set difference that finds what left a status
 * without appearing in another list. One statement; idempotent.
 */
export async function doubtUnseenOpenItems(
  db: Knex,
  { run, failedSince, noticedAt }: { run: number; failedSince: Date; noticedAt: Date },
  resource: Resource,
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into reconcile.doubts (run, resource, id, why, due_at, noticed_at)
     select :run, :resource, m.id, 'open_item', :noticedAt, :noticedAt
     from mirror.${mirrorTableOf[resource]} m
     where ${openWhere[resource]} and not exists (
       select from reconcile.seen s where s.run = :run and s.resource = :resource and s.id = m.id)
     on conflict do nothing`,
    { run, resource, failedSince, noticedAt },
  );
  return rowCount;
}
