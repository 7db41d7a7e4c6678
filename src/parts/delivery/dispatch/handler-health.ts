import type { Knex } from "knex";
import type { HandlerHealth } from "../../../app/answers.ts";
import type { SourceName } from "./recipient.ts";

/**
 * The state of all handlers that ever ran here. Counts no further than `most`, and uses only indexes, so that it can be
 * read often. One statement.
 */
export async function readHandlersHealth(db: Knex, { most }: { most: number }): Promise<HandlerHealth[]> {
  const { rows } = await db.raw<{ rows: HealthRow[] }>(
    `select h.name, h.source, h.paused_by, h.paused_at, h.pause_reason, h.position, coalesce(c.postponed, 0) as postponed, d.dead, d.dead_since, o.seq, o.kind, o.resource,
            o.id, o.error, o.holds_up,
            case h.source when 'changes' then (
              select c.recorded_at from feed.changes c where c.seq > h.position order by c.seq limit 1
            ) else (
              -- What no worker has tried yet is kept from it: that is the worker's delay.
              select e.received_at from (
                select seq, received_at from inbox.receipts where seq > h.position order by seq limit 1
              ) e where not exists (
                select from inbox.progress p where p.seq = e.seq and p.state = 'received')
            ) end as unread_since,
            (select r.due_at from dispatch.runs r where r.handler = h.name and r.is_first and r.state = 'waiting'
             order by r.due_at, r.seq limit 1) as next_due_at
     from dispatch.handlers h
     left join dispatch.counts c on c.handler = h.name
     cross join lateral (
       select count(*) as dead, min(failed_at) as dead_since from (
         select failed_at from dispatch.runs where handler = h.name and state = 'dead' order by seq limit :most
       ) as counted
     ) d
     left join lateral (
       select r.seq, r.kind, r.resource, r.id, r.error, (
         select count(*) from (
           select from dispatch.runs n
           where n.handler = r.handler and n.resource = r.resource and n.id = r.id and n.seq > r.seq limit :most
         ) as later) as holds_up
       from dispatch.runs r where r.handler = h.name and r.state = 'dead' order by r.seq limit 1
     ) o on true
     order by h.name`,
    { most },
  );
  return rows.map(healthOf);
}

interface HealthRow {
  name: string;
  source: SourceName;
  paused_by: HandlerHealth["pausedBy"];
  paused_at: Date | null;
  pause_reason: string | null;
  position: string;
  dead: string;
  postponed: string;
  dead_since: Date | null;
  seq: string | null;
  kind: string;
  resource: string;
  id: string;
  error: string | null;
  holds_up: string;
  unread_since: Date | null;
  next_due_at: Date | null;
}

function healthOf(row: HealthRow): HandlerHealth {
  const { seq, kind, resource, id, error, holds_up: holdsUp } = row;
  return {
    name: row.name,
    source: row.source,
    pausedBy: row.paused_by,
    pausedAt: row.paused_at,
    pauseReason: row.pause_reason,
    dead: Number(row.dead),
    postponed: Number(row.postponed),
    deadSince: row.dead_since,
    oldestDead: seq === null ? null : { seq: Number(seq), kind, resource, id, error, holdsUp: Number(holdsUp) },
    position: Number(row.position),
    unreadSince: row.unread_since,
    nextDueAt: row.next_due_at,
  };
}
