import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";

/** An event whose object another session keeps locked. */
export interface LockedEvent {
  seq: number;
  /** The lock's holder in words; null when it is unknown. */
  holder: string | null;
}

/** Start of an event's reason: `deferLocked` writes it, `readLockWaits` reads it. */
const waitsSince = "waits for a lock since ";
const sincePattern = `^${waitsSince}(\\S+Z)`;

/**
 * Defers events that could not be tried because their objects are locked, without counting an attempt. Their reason
 * holds since when they wait, and for which holder. Does nothing for those that another worker has completed. One
 * statement.
 */
export async function deferLocked(
  db: Knex,
  locked: readonly LockedEvent[],
  { delayMs }: { delayMs: number },
): Promise<void> {
  if (locked.length === 0) return;
  await db.raw(
    `update inbox.progress p
     set state = 'failed', next_attempt_at = now() + make_interval(secs => :delayMs::float8 / 1000),
         reason = :waitsSince || coalesce(
             case when p.state = 'failed' then substring(p.reason from :sincePattern) end,
             to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
           || ' of ' || coalesce(l.holder, 'a session that is not known')
     from unnest(:seqs::bigint[], :holders::text[]) l(seq, holder)
     where p.seq = l.seq and p.seq = any(:seqs::bigint[]) and p.state in ('received', 'failed')`,
    {
      delayMs,
      waitsSince,
      sincePattern,
      seqs: sqlArray(locked.map(({ seq }) => seq)),
      holders: sqlArray(locked.map(({ holder }) => holder)),
    },
  );
}

/** Events that wait for locks, of which the first has waited for long. */
export interface LockWaits {
  events: number;
  /** The longest wait, by the database's clock. */
  waitedMs: number;
  /** The holder of the lock that the first waits for, as a worker saw it at its last attempt. */
  holder: string;
}

/** A longer wait is reported: no transaction of this program lasts so long. */
const longAfterSeconds = 60;

/** Null where no event has waited for a lock for a minute. One statement. */
export async function readLockWaits(db: Knex): Promise<LockWaits | null> {
  const { rows } = await db.raw<{ rows: LockWaits[] }>(
    `select (count(*) over ())::int as events, split_part(reason, 'Z of ', 2) as holder,
            (extract(epoch from now() - since) * 1000)::float8 as "waitedMs"
     from (select reason, substring(reason from :sincePattern)::timestamptz as since
           from inbox.progress where state = 'failed' and reason ~ :sincePattern) waits
     order by since limit 1`,
    { sincePattern },
  );
  const [first] = rows;
  return first !== undefined && first.waitedMs >= longAfterSeconds * 1_000 ? first : null;
}
