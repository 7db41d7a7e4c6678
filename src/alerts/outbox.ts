import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import type { AlertAction, AlertMessage } from "./message.ts";

/** A row of the outbox that is to be sent now, with what decides whether it still should be. */
export interface ClaimedRow {
  id: string;
  stage: string;
  action: AlertAction;
  message: AlertMessage;
  /** This one included. */
  attempts: number;
  /** Since it was due. */
  waitedMs: number;
  /** An earlier attempt began and its outcome is not known. */
  mayBeRepeat: boolean;
  /** Null for what belongs to no alert: a digest. */
  alertState: "open" | "acknowledged" | "resolved" | null;
  /** It lists other alerts than its own: those of a storm. */
  isList: boolean;
  /** This channel was told, or may have been told, of an earlier stage of the same alert. */
  isEarlierTold: boolean;
  /** The same of a later stage. */
  isLaterTold: boolean;
}

/**
 * Takes rows of one channel that are due, and hides them for `leaseMs`, so that what a killed process held comes
 * back. Of one alert only the earliest due stage is given, so that stages are told in their order; one that waits for
 * its time (quiet hours) holds up nothing. The oldest come first, or with `leastTried` those that were tried least. One
 * statement, its own transaction. Times are the database's.
 */
export async function claimDue(
  db: Knex,
  channel: string,
  { limit, leaseMs, leastTried = false }: { limit: number; leaseMs: number; leastTried?: boolean },
): Promise<ClaimedRow[]> {
  const order = leastTried ? "o.attempts, o.due_at, o.id" : "o.due_at, o.id";
  const { rows } = await db.raw<{ rows: ClaimedColumns[] }>(
    `with due as (
       select o.id, o.maybe_sent, o.alert_id from alerts.outbox o
       where o.channel = ? and o.state = 'pending' and coalesce(o.next_attempt_at, o.due_at) <= now()
         and not exists (
           select from alerts.outbox earlier
           where earlier.alert_id = o.alert_id and earlier.channel = o.channel and earlier.id < o.id
             and earlier.state = 'pending' and earlier.due_at <= now())
       order by ${order} limit ? for update of o skip locked
     )
     update alerts.outbox o
     set attempts = o.attempts + 1, maybe_sent = true,
         next_attempt_at = now() + make_interval(secs => ?)
     from due left join alerts.alerts a on a.id = due.alert_id
     where o.id = due.id
     returning o.id, o.stage, o.action, o.message, o.attempts, due.maybe_sent, o.is_list, a.state as alert_state,
       extract(epoch from now() - o.due_at)::float8 * 1000 as waited_ms,
       exists (select from alerts.outbox t where t.alert_id = o.alert_id and t.channel = o.channel
               and t.id < o.id and (t.state = 'sent' or t.maybe_sent)) as earlier_told,
       exists (select from alerts.outbox t where t.alert_id = o.alert_id and t.channel = o.channel
               and t.id > o.id and not t.is_list and (t.state = 'sent' or t.maybe_sent)) as later_told`,
    [channel, limit, leaseMs / 1_000],
  );
  return rows
    .sort((a, b) => Number(a.id) - Number(b.id))
    .map((row) => ({
      id: row.id,
      stage: row.stage,
      action: row.action,
      message: row.message,
      attempts: row.attempts,
      waitedMs: row.waited_ms,
      mayBeRepeat: row.maybe_sent,
      isList: row.is_list,
      alertState: row.alert_state,
      isEarlierTold: row.earlier_told,
      isLaterTold: row.later_told,
    }));
}

interface ClaimedColumns {
  id: string;
  stage: string;
  action: AlertAction;
  message: AlertMessage;
  attempts: number;
  waited_ms: number;
  maybe_sent: boolean;
  is_list: boolean;
  alert_state: ClaimedRow["alertState"];
  earlier_told: boolean;
  later_told: boolean;
}

/** What became of a claimed row. The reason is for people, without secrets and personal data. */
export type Settlement =
  | { state: "sent" }
  | { state: "dropped" | "failed"; reason: string; maybeSent: boolean }
  | { state: "pending"; reason: string; maybeSent: boolean; retryInMs: number };

/** Writes what became of a claimed row; one that was settled meanwhile stays as it is. One statement. */
export async function settle(db: Knex, id: string, settlement: Settlement): Promise<void> {
  const isSent = settlement.state === "sent";
  await db.raw(
    `update alerts.outbox
     set state = :state, last_error = :reason, maybe_sent = :maybeSent,
         sent_at = case when :state = 'sent' then now() end,
         next_attempt_at = case when :state = 'pending' then now() + make_interval(secs => :retryIn) end
     where id = :id and state = 'pending'`,
    {
      id,
      state: settlement.state,
      reason: isSent ? null : settlement.reason,
      maybeSent: isSent ? false : settlement.maybeSent,
      retryIn: settlement.state === "pending" ? settlement.retryInMs / 1_000 : 0,
    },
  );
}

/**
 * Fails what has been due for an hour on channels that the settings no longer have: nobody would ever send it.
 * Gives back how many. One statement.
 */
export async function failOrphans(db: Knex, channels: readonly string[]): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `update alerts.outbox set state = 'failed', last_error = 'the settings have no such channel'
     where state = 'pending' and due_at < now() - interval '1 hour' and channel <> all(?::text[])
     returning id`,
    [sqlArray(channels)],
  );
  return rows.length;
}

/** What was given up in the last day, and what should have been sent over five minutes ago. One statement. */
export async function outboxTrouble(db: Knex): Promise<{ failed: number; late: number }> {
  const { rows } = await db.raw<{ rows: { failed: number; late: number }[] }>(
    `select count(*) filter (where state = 'failed')::int as failed,
            count(*) filter (where state = 'pending' and due_at < now() - interval '5 minutes')::int as late
     from alerts.outbox
     where state = 'pending' or (state = 'failed' and created_at > now() - interval '1 day')`,
  );
  return rows[0] ?? { failed: 0, late: 0 };
}
