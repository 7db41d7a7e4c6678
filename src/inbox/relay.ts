import type { Knex } from "knex";

/** Held by the one relay that works now, for the length of its transaction. Any fixed number of our own. */
const relayLock = 7_255_011_933;

export interface RelayLimits {
  /** How long a row may stay `received` before its wake-up is taken for lost. */
  receivedAfterSeconds: number;
  /** How long a relayed row is left alone: the queue may only be busy. */
  againAfterSeconds: number;
  maxRows: number;
}

export const defaultRelayLimits: RelayLimits = {
  receivedAfterSeconds: 5,
  againAfterSeconds: 20,
  maxRows: 5_000,
};

/** Numbers of events, rising. */
export interface RelayRows {
  /** Handed over to nobody since they came, or since they failed. */
  first: number[];
  /** Handed over before, and nothing came of it. */
  again: number[];
}

/**
 * Takes the rows whose wake-up was lost or is due: `received` for too long, or `failed` and due again. They are
 * marked, so that a second relay, or this one a second later, does not take them too; those that a worker holds are
 * at work and left alone. Reads Postgres alone.
 * Opens its own transaction; gives back nothing where another relay is at work.
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
