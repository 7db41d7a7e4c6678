import type { Knex } from "knex";

/** A receiver's report about itself, sent every few seconds. */
export interface Beat {
  /** It can store events. */
  isReady: boolean;
  /** It answered a webhook since the last beat. */
  hasAnswered: boolean;
}

/** Records that a receiver lives. One statement, by the database's clock. */
export async function recordBeat(db: Knex, name: string, { isReady, hasAnswered }: Beat): Promise<void> {
  await db.raw(
    `insert into receiver.heartbeats as h (name, ready_at, answered_at)
     values (:name, case when :isReady::boolean then now() end, case when :hasAnswered::boolean then now() end)
     on conflict (name) do update set beat_at = excluded.beat_at,
       ready_at = coalesce(excluded.ready_at, h.ready_at), answered_at = coalesce(excluded.answered_at, h.answered_at)`,
    { name, isReady, hasAnswered },
  );
}

/** Records that a receiver ended well. One statement; idempotent. */
export async function recordStop(db: Knex, name: string): Promise<void> {
  await db("receiver.heartbeats").where({ name }).update({ stopped_at: db.fn.now() });
}

/** State of the receivers, by the database's clock. */
export interface Receivers {
  /** Null: no receiver was ever heard of. */
  presence: {
    /** Number of running receivers that can store events. */
    ready: number;
    /** They run, and cannot store events. */
    unready: number;
    /** They ended without a word, in the last hour. */
    missing: number;
    /** No receiver took webhooks for the whole span asked for; a span as short as a restart does not count. */
    isAbsent: boolean;
    /** When one could last take a webhook, or started. */
    lastReadyAt: Date;
  } | null;
  /** When a webhook was last answered, by anything; to ten seconds. */
  lastAnswerAt: Date | null;
  /** When the newest event of the inbox arrived. */
  lastWebhookAt: Date | null;
  /** The time by the database's clock. */
  now: Date;
}

/** A receiver is heard every ten seconds. */
const receiverGraceMinutes = 2;

interface Row {
  n: number;
  ready: number;
  unready: number;
  missing: number;
  absent: boolean | null;
  last_ready_at: Date;
  last_answer_at: Date | null;
  last_webhook_at: Date | null;
  now: Date;
}

/** One statement, of a few rows. */
export async function readReceivers(db: Knex, afterMinutes: number = receiverGraceMinutes): Promise<Receivers> {
  const { rows } = await db.raw<{ rows: [Row] }>(
    `select count(*)::int as n,
       count(*) filter (where runs and ready_at >= limit_at)::int as ready,
       count(*) filter (where runs and coalesce(ready_at < limit_at, true))::int as unready,
       count(*) filter (where stopped_at is null and not runs and beat_at >= now() - interval '1 hour')::int as missing,
       max(able_at) < max(limit_at) as absent, max(able_at) as last_ready_at, max(answered_at) as last_answer_at,
       (select received_at from inbox.receipts order by seq desc limit 1) as last_webhook_at, now() as now
     from (
       select ready_at, answered_at, stopped_at, beat_at, coalesce(ready_at, started_at) as able_at, limit_at,
         stopped_at is null and beat_at >= limit_at as runs
       from receiver.heartbeats, (select now() - make_interval(mins => ?) as limit_at) l
     ) h`,
    [afterMinutes],
  );
  const [{ n, ready, unready, missing, absent, ...at }] = rows;
  return {
    presence: n === 0 ? null : { ready, unready, missing, isAbsent: absent === true, lastReadyAt: at.last_ready_at },
    lastAnswerAt: at.last_answer_at,
    lastWebhookAt: at.last_webhook_at,
    now: at.now,
  };
}

/**
 * Forgets receivers that were silent for an hour, but keeps the newest: it shows that there was one. One statement;
 * idempotent.
 */
export async function forgetReceivers(db: Knex): Promise<void> {
  await db.raw(
    `delete from receiver.heartbeats where beat_at < now() - interval '1 hour'
       and name <> (select name from receiver.heartbeats order by beat_at desc, name limit 1)`,
  );
}
