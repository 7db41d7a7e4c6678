import { createHash } from "node:crypto";
import type { Knex } from "knex";

/** A change of an object at the service; `type`: the event that documents it. */
export interface Announcement {
  resource: string;
  id: string;
  at: string;
  type: string | null;
}

/** The documented event of an order's state (spec, Events); null where there is none. */
export function orderEvent(status: string): string | null {
  if (status.startsWith("chargeback")) return "order.(chargeback)";
  if (status === "refunded" || status === "partially_refunded") return "order.refunded";
  if (status === "pending") return "order.created";
  return status === "succeeded" || status === "failed" ? `order.${status}` : null;
}

const minutesLate = { in_time: 9, late: 11, missed: null } as const;

/** What becomes of the event about an object: always the same. */
export function sendDecisionOf(id: string): keyof typeof minutesLate {
  const fates = ["in_time", "in_time", "late", "missed"] as const;
  return fates[createHash("md5").update(id).digest().readUInt8(0) % fates.length] ?? "missed";
}

/**
 * Puts the events into the inbox that arrived, and for each that did not another one about the same object. Every other
 * event was applied by a release that did not copy its times.
 */
export async function deliver(db: Knex, announcements: readonly Announcement[]): Promise<void> {
  const rows = announcements
    .filter(({ type }) => type !== null)
    .map(({ resource, id, at, type }, n) => {
      const late = minutesLate[sendDecisionOf(id)];
      const receivedAt = new Date(Date.parse(at) + (late ?? 1) * 60_000).toISOString();
      // A chargeback's event has no name: any about the order is taken for it.
      const other = type === "order.(chargeback)" ? null : "order.updated";
      return { n, resource, id, at, receivedAt, type: late === null ? other : type };
    })
    .filter(({ type }) => type !== null);
  await db.raw(
    `with given as (select * from jsonb_to_recordset(?::jsonb) as g(
       n integer, resource text, id text, at timestamptz, "receivedAt" timestamptz, type text)
     ), receipt as (
       insert into inbox.receipts (event_id, raw_sha256, type, event_created_at, received_at, raw, secret_id)
       select 'evt_' || n, sha256(convert_to(n::text, 'UTF8')), type, at, "receivedAt", '', 'test' from given
       returning seq, event_id, type, event_created_at, received_at
     )
     insert into inbox.progress (seq, state, resource_type, resource_id, event_type, event_at, arrived_at)
     select r.seq, 'applied', g.resource, g.id, c.* from receipt r join given g on r.event_id = 'evt_' || g.n
     left join lateral (select r.type, r.event_created_at, r.received_at where g.n % 2 = 0) c on true`,
    [JSON.stringify(rows)],
  );
}
