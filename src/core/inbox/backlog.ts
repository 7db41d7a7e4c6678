import type { Knex } from "knex";

/** A count that stops at a limit. */
export interface BoundedCount {
  n: number;
  /** There are more than `n`. */
  isMore: boolean;
}

/** The part of the inbox that is still to be applied, or was given up. */
export interface Backlog {
  /** Receipt time of the oldest event that no worker has tried; null: none waits. */
  waitingSince: Date | null;
  waiting: BoundedCount;
  failed: BoundedCount;
  dead: BoundedCount;
  /** Why the newest dead events are dead, the commonest first. */
  deadReasons: { reason: string | null; n: number }[];
}

const enoughToShow = 1_000;

/** One statement, by the indexes of these states alone: fast with any number of events. */
export async function readBacklog(
  db: Knex,
  { countedTo }: { countedTo: number } = { countedTo: enoughToShow },
): Promise<Backlog> {
  const bounded = (state: string) =>
    `(select count(*) from (select from inbox.progress where state = '${state}' limit ${countedTo + 1}) s)`;
  const { rows } = await db.raw<{ rows: [BacklogRow] }>(
    `select ${bounded("received")} as waiting, ${bounded("failed")} as failed, ${bounded("dead")} as dead,
       (select r.received_at
        from (select seq from inbox.progress where state = 'received' order by seq limit 1) oldest
        join inbox.receipts r using (seq)) as waiting_since,
       (select coalesce(json_agg(json_build_object('reason', d.reason, 'n', d.n) order by d.n desc, d.reason), '[]')
        from (select reason, count(*) as n
              from (select reason from inbox.progress where state = 'dead' order by seq desc limit ${enoughToShow}) newest
              group by reason order by n desc, reason limit 5) d) as dead_reasons`,
  );
  const [{ waiting_since: waitingSince, dead_reasons: deadReasons, ...counts }] = rows;
  return {
    waitingSince,
    waiting: boundedCount(counts.waiting, countedTo),
    failed: boundedCount(counts.failed, countedTo),
    dead: boundedCount(counts.dead, countedTo),
    deadReasons,
  };
}

const boundedCount = (text: string, countedTo: number): BoundedCount => {
  const n = Number(text);
  return { n: Math.min(n, countedTo), isMore: n > countedTo };
};

interface BacklogRow {
  waiting_since: Date | null;
  waiting: string;
  failed: string;
  dead: string;
  dead_reasons: { reason: string | null; n: number }[];
}

export interface RelayLimits {
  /** How long an event may wait before its wake-up counts as lost. */
  lateAfterSeconds: number;
  /** The most failed events of one round. */
  maxDue: number;
}

const defaultRelayLimits: RelayLimits = { lateAfterSeconds: 5, maxDue: 500 };

/** Work that has waited too long without a wake-up. */
interface OverdueWork {
  /** An event waits for too long, or was put back by a replay. */
  isLate: boolean;
  /** Sequence numbers of failed events whose next attempt is due. */
  due: number[];
}

/** Finds it in PostgreSQL alone: the queue may have lost a wake-up. One statement. */
export async function findOverdue(db: Knex, limits: RelayLimits = defaultRelayLimits): Promise<OverdueWork> {
  const { rows } = await db.raw<{ rows: { is_late: boolean; due: string[] }[] }>(
    `select exists (
       select from (select seq from inbox.progress where state = 'received' order by seq limit 1) oldest
       join inbox.receipts r using (seq)
       where r.received_at < now() - make_interval(secs => :lateAfterSeconds)
     ) as is_late, array(
       select seq from inbox.progress where state = 'failed' and next_attempt_at <= now()
       order by next_attempt_at limit :maxDue
     ) as due`,
    { ...limits },
  );
  const { is_late: isLate = false, due = [] } = rows[0] ?? {};
  return { isLate, due: due.map(Number) };
}
