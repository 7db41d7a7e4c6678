import type { Knex } from "knex";

/** Advisory lock of the one active relay, held for the length of its transaction. An arbitrary fixed number. */
const relayLock = 7_255_011_933;

export interface RelayLimits {
  /** How long a row may stay `received` before its wake-up counts as lost. */
  receivedAfterSeconds: number;
  /** How long a relayed row is not relayed again: the queue may just be busy. */
  againAfterSeconds: number;
  maxRows: number;
}

export const defaultRelayLimits: RelayLimits = {
  receivedAfterSeconds: 5,
  againAfterSeconds: 20,
  maxRows: 5_000,
};

/** Sequence numbers of events, ascending. */
export interface RelayRows {
  /** Not relayed since they arrived or last failed. */
  first: number[];
  /** Relayed before, and still not applied. */
  again: number[];
}

/**
 * Takes the rows whose wake-up was lost or is due: `received` for too long, or `failed` and due again. Marks them, so
 * that no relay takes them again too soon. Skips rows that a worker has locked. Reads PostgreSQL alone. Opens its own
 * transaction. Returns nothing while another relay is active.
 */
export async function takeRelayRows(
  db: Knex,
  limits: RelayLimits = defaultRelayLimits,
): Promise<RelayRows> {
  return db.transaction(async (trx) => {
    const { rows: locks } = await trx.raw<{ rows: { held: boolean }[] }>(
      "select pg_try_advisory_xact_lock(?) as held",
      [relayLock],
    );
    if (locks[0]?.held !== true) return { first: [], again: [] };
    const { rows } = await trx.raw<{ rows: { seq: string; was_relayed: boolean }[] }>(
      `with late as (
         select p.seq, p.relayed_at from inbox.progress p join inbox.receipts r using (seq)
         where p.state = 'received' and r.received_at < now() - make_interval(secs => :receivedAfterSeconds)
           and (p.relayed_at is null or p.relayed_at <= now() - make_interval(secs => :againAfterSeconds))
         order by p.seq limit :maxRows for update of p skip locked
       ), again as (
         select seq, relayed_at from inbox.progress where state = 'failed' and next_attempt_at <= now()
           and (relayed_at is null or relayed_at <= now() - make_interval(secs => :againAfterSeconds))
         order by next_attempt_at limit :maxRows for update skip locked
       ), due as (
         select * from late union all select * from again
       )
       update inbox.progress p set relayed_at = now() from due where p.seq = due.seq
       returning p.seq, due.relayed_at is not null as was_relayed`,
      { ...limits },
    );
    const seqsWhere = (wasRelayed: boolean): number[] =>
      rows
        .filter((row) => row.was_relayed === wasRelayed)
        .map(({ seq }) => Number(seq))
        .sort((a, b) => a - b);
    return { first: seqsWhere(false), again: seqsWhere(true) };
  });
}
