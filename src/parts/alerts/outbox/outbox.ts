import type { Knex } from "knex";
import { sqlArray, storableJson } from "../../../platform/postgres/values.ts";
import { isTracing } from "../../../platform/tracing/tracing.ts";
import type { AlertAction, AlertMessage } from "../message.ts";
import { holding } from "../silences.ts";
import { withinWriteSpan } from "./message-spans.ts";

export interface OutboxRow {
  channel: string;
  /** Null for a digest. */
  alertId: number | null;
  message: AlertMessage;
  notBefore: Date | null;
  /** The message lists other alerts than its own, so it is worth sending even when its own alert is over. */
  isList?: boolean;
}

/** Puts messages into the outbox, each at most once ever. Needs the transaction of the change that they report. */
export async function queueMessages(trx: Knex, rows: readonly OutboxRow[]): Promise<void> {
  if (rows.length === 0) return;
  const insert = (given: readonly OutboxRow[]): Promise<void> => insertMessages(trx, given);
  await (isTracing() ? withinWriteSpan(rows, insert) : insert(rows));
}

async function insertMessages(trx: Knex, rows: readonly OutboxRow[]): Promise<void> {
  const given = rows.map(({ channel, alertId, message, notBefore, isList }, n) => {
    const { stage, action } = message;
    const is_list = isList === true;
    return { n, channel, alert_id: alertId, stage, action, message, due_at: notBefore, is_list };
  });
  await trx.raw(
    `insert into alerts.outbox (channel, alert_id, stage, action, message, due_at, is_list)
     select g.channel, g.alert_id, g.stage, g.action, g.message,
            -- An end waits for the lists of its incident: a list that came later would open the incident again.
            greatest(coalesce(g.due_at, now()), (
              select max(l.due_at) from alerts.outbox l
              where g.action = 'resolve' and l.alert_id = g.alert_id and l.channel = g.channel and l.is_list
                and l.state = 'pending')),
            g.is_list
     from jsonb_to_recordset(?::jsonb) as g
       (n integer, channel text, alert_id bigint, stage text, action text, message jsonb, due_at timestamptz,
        is_list boolean)
     order by g.n on conflict (channel, alert_id, stage) do nothing`,
    [storableJson(given)],
  );
}

/** Withdraws unsent messages of alerts that are over, and their places in digests. */
export async function dropUnsent(trx: Knex, alertIds: readonly number[]): Promise<void> {
  // An attempt that is in progress or was interrupted may have arrived.
  await trx.raw(
    `update alerts.outbox set state = 'dropped'
     where alert_id = any(?::bigint[]) and state = 'pending' and attempts = 0 and not is_list`,
    [sqlArray(alertIds)],
  );
  await trx("alerts.digest_items")
    .whereIn("alert_id", [...alertIds])
    .whereNull("told_at")
    .delete();
}

/** The channels of an alert's later transition. */
export interface Superseded {
  alertId: number;
  channels: readonly string[];
}

/**
 * Withdraws messages that wait for their time, a digest or a storm's list and are superseded by a later transition.
 * Only on the channels that get the later one, since the others would get no message about the alert at all.
 */
export async function dropSuperseded(trx: Knex, overtaken: readonly Superseded[]): Promise<void> {
  const pairs = overtaken.flatMap(({ alertId, channels }) => channels.map((channel) => ({ alertId, channel })));
  if (pairs.length === 0) return;
  const bindings = [sqlArray(pairs.map(({ alertId }) => alertId)), sqlArray(pairs.map(({ channel }) => channel))];
  const told = "unnest(?::bigint[], ?::text[]) as told(alert_id, channel)";
  await trx.raw(
    `update alerts.outbox o set state = 'dropped' from ${told}
     where o.alert_id = told.alert_id and o.channel = told.channel and o.state = 'pending' and o.attempts = 0
       and not o.is_list and o.due_at > now()`,
    bindings,
  );
  for (const table of ["alerts.digest_items", "alerts.storm_items"]) {
    await trx.raw(
      `delete from ${table} i using ${told}
       where i.alert_id = told.alert_id and i.channel = told.channel and i.told_at is null`,
      bindings,
    );
  }
}

/** The channels whose daily digests listed each of these alerts as a task. One statement. */
export async function digestChannels(trx: Knex, alertIds: readonly number[]): Promise<Map<number, string[]>> {
  const { rows } = await trx.raw<{ rows: { alert_id: string; channels: string[] }[] }>(
    // The digest counted a renewal that only waited without asking for an action.
    `select i.alert_id, array_agg(distinct i.channel order by i.channel) as channels
     from alerts.digest_items i join alerts.alerts a on a.id = i.alert_id
     where i.alert_id = any(?::bigint[]) and i.told_at is not null
       and (a.rule = 'decline' or i.stage = 'final' or starts_with(i.stage, 'last-retry:'))
     group by i.alert_id`,
    [sqlArray(alertIds)],
  );
  return new Map(rows.map(({ alert_id: id, channels }) => [Number(id), channels]));
}

/** The channels on which each of these alerts was sent, may have been sent, or is about to be. One statement. */
export async function sentChannels(trx: Knex, alertIds: readonly number[]): Promise<Map<number, string[]>> {
  const told = new Map<number, string[]>();
  if (alertIds.length === 0) return told;
  const { rows } = await trx.raw<{ rows: { alert_id: string; channels: string[] }[] }>(
    `select alert_id, array_agg(distinct channel order by channel) as channels from alerts.outbox
     where alert_id = any(?::bigint[]) and action = 'trigger'
       and (state in ('pending', 'sent') or (state = 'failed' and maybe_sent)) group by alert_id`,
    [sqlArray(alertIds)],
  );
  for (const { alert_id: id, channels } of rows) told.set(Number(id), channels);
  return told;
}

/** The channels on which each of these alerts was listed in its storm. One statement. */
export async function stormListedChannels(trx: Knex, alertIds: readonly number[]): Promise<Map<number, string[]>> {
  const { rows } = await trx.raw<{ rows: { alert_id: string; channels: string[] }[] }>(
    `select alert_id, array_agg(distinct channel order by channel) as channels from alerts.storm_items
     where alert_id = any(?::bigint[]) and told_at is not null and told_how in ('at_once', 'at_end')
     group by alert_id`,
    [sqlArray(alertIds)],
  );
  return new Map(rows.map(({ alert_id: id, channels }) => [Number(id), channels]));
}

export interface DigestItem {
  channel: string;
  alertId: number;
  stage: string;
}

/** Keeps transitions for the next digests of their channels. One statement; idempotent. */
export async function queueForDigest(trx: Knex, items: readonly DigestItem[]): Promise<void> {
  if (items.length === 0) return;
  await trx.raw(
    `insert into alerts.digest_items (channel, alert_id, stage)
     select * from unnest(?::text[], ?::bigint[], ?::text[]) on conflict do nothing`,
    [
      sqlArray(items.map(({ channel }) => channel)),
      sqlArray(items.map(({ alertId }) => alertId)),
      sqlArray(items.map(({ stage }) => stage)),
    ],
  );
}

/** A row of the outbox that is to be sent now, with the facts for its send decision. */
export interface ClaimedRow {
  id: string;
  stage: string;
  action: AlertAction;
  message: AlertMessage;
  /** Including this one. */
  attempts: number;
  /** Waiting time since the row was due. */
  waitedMs: number;
  /** An earlier attempt began, and its outcome is unknown. */
  mayBeRepeat: boolean;
  /** Null for a digest, which belongs to no alert. */
  alertState: "open" | "acknowledged" | "resolved" | null;
  /** The message lists the alerts of a storm, not its own alert. */
  isList: boolean;
  /** This channel was sent, or may have been sent, an earlier transition of the same alert. */
  isEarlierTold: boolean;
  /** This channel was sent, or may have been sent, a later transition of the same alert. */
  isLaterTold: boolean;
}

/**
 * Claims due rows of one channel and hides them for `leaseMs`, so that rows held by a killed process come back. Of one
 * alert it returns only the earliest due transition, which keeps their order; a transition that waits for its time
 * (quiet hours) delays no other. The oldest rows come first, or with `leastTried` those with the fewest attempts.
 * Silenced messages wait for the silence's end. Ends and acknowledgements are never held, nor are lists, which report
 * other alerts, nor messages that may have arrived. One statement, its own transaction. Times are the database's.
 */
export async function claimDue(
  db: Knex,
  channel: string,
  { limit, leaseMs, leastTried = false }: { limit: number; leaseMs: number; leastTried?: boolean },
): Promise<ClaimedRow[]> {
  const order = leastTried ? "o.attempts, o.due_at, o.id" : "o.due_at, o.id";
  const { rows } = await db.raw<{ rows: ClaimedColumns[] }>(
    `with silenced as materialized (
       select o.id, h.id as silence_id, h.ends_at
       from alerts.outbox o join alerts.alerts a on a.id = o.alert_id
       -- Locked: whoever ends the silence now finds what it holds.
       cross join lateral (${holding("o.message->>'severity'")} for share) h
       where o.channel = ? and o.state = 'pending' and coalesce(o.next_attempt_at, o.due_at) <= now()
         and o.action = 'trigger' and not o.is_list and not o.maybe_sent
       for update of o skip locked
     ), held as (
       update alerts.outbox o set due_at = s.ends_at, next_attempt_at = null, silence_id = s.silence_id
       from silenced s where o.id = s.id
     ), due as (
       select o.id, o.maybe_sent, o.alert_id from alerts.outbox o
       where o.channel = ? and o.state = 'pending' and coalesce(o.next_attempt_at, o.due_at) <= now()
         and not exists (select from silenced s where s.id = o.id)
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
    [channel, channel, limit, leaseMs / 1_000],
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

/** The outcome of a claimed row. The reason is for people, without secrets or personal data. */
export type SendOutcome =
  | { state: "sent" }
  | { state: "dropped" | "failed"; reason: string; maybeSent: boolean }
  | { state: "pending"; reason: string; maybeSent: boolean; retryInMs: number };

/** Records the outcome of a claimed row. A row that was completed before stays unchanged. One statement. */
export async function recordOutcome(db: Knex, id: string, settlement: SendOutcome): Promise<void> {
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
 * Fails messages that have been due for an hour on channels no longer in the settings, since they could never be sent.
 * Returns their number. One statement.
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

/**
 * Counts the messages that were given up in the last day, and those that are more than five minutes late. One
 * statement.
 */
export async function outboxTrouble(db: Knex): Promise<{ failed: number; late: number }> {
  const { rows } = await db.raw<{ rows: { failed: number; late: number }[] }>(
    `select count(*) filter (where state = 'failed')::int as failed,
            count(*) filter (where state = 'pending' and due_at < now() - interval '5 minutes')::int as late
     from alerts.outbox
     where state = 'pending' or (state = 'failed' and created_at > now() - interval '1 day')`,
  );
  return rows[0] ?? { failed: 0, late: 0 };
}

/** How many messages are more than five minutes late, counted up to `most`: no process sends, or a channel is down. */
export async function countLate(db: Knex, { most }: { most: number }): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ late: number }] }>(
    `select count(*)::int as late from (
       select from alerts.outbox where state = 'pending' and due_at < now() - interval '5 minutes' limit ?
     ) counted`,
    [most],
  );
  return rows[0].late;
}

export interface Resend {
  /** Only this message; if omitted, all. */
  messageId?: number;
  alertId?: number;
  channel?: string;
  /** Only messages written in the last so many hours. */
  withinHours: number;
}

/**
 * Queues abandoned messages again, with their old keys: a message that did arrive is recognized as a repeat, and one
 * that is over is dropped when its turn comes. Returns their number by channel. One statement; idempotent.
 */
export async function resendFailed(
  db: Knex,
  { messageId, alertId, channel, withinHours }: Resend,
): Promise<Record<string, number>> {
  const { rows } = await db.raw<{ rows: { channel: string; n: string }[] }>(
    `with again as (
       update alerts.outbox set state = 'pending', attempts = 0, next_attempt_at = null, last_error = null,
              due_at = now()
       where state = 'failed' and created_at > now() - make_interval(hours => :withinHours)
         and id = coalesce(:messageId::bigint, id)
         and (:alertId::bigint is null or alert_id = :alertId) and (:channel::text is null or channel = :channel)
       returning channel
     )
     select channel, count(*) as n from again group by channel order by channel`,
    {
      messageId: messageId ?? null,
      alertId: alertId ?? null,
      channel: channel ?? null,
      withinHours,
    },
  );
  return Object.fromEntries(rows.map(({ channel: name, n }) => [name, Number(n)]));
}
