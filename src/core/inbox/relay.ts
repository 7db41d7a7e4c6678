import type { Knex } from "knex";

export interface RelayLimits {
  /** How long an event may wait before its wake-up counts as lost. */
  lateAfterSeconds: number;
  /** The most failed events of one round. */
  maxDue: number;
}

const defaultRelayLimits: RelayLimits = { lateAfterSeconds: 5, maxDue: 500 };

/** Work that has waited too long without a wake-up. */
export interface OverdueWork {
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
