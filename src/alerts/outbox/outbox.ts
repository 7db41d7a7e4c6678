import type { Knex } from "knex";
import { sqlArray, storableJson } from "../../platform/postgres/values.ts";
import type { AlertAction, AlertMessage } from "../message.ts";

export interface OutboxRow {
  channel: string;
  /** Null for a digest. */
  alertId: number | null;
  message: AlertMessage;
  notBefore: Date | null;
  /** It lists other alerts than its own, and is worth telling when that one is over. */
  isList?: boolean;
}

/** Puts messages into the outbox, each once for all time. Belongs into the transaction of what they tell of. */
export async function queueMessages(trx: Knex, rows: readonly OutboxRow[]): Promise<void> {
  if (rows.length === 0) return;
  const given = rows.map(({ channel, alertId, message, notBefore, isList }, n) => {
    const { stage, action } = message;
    const is_list = isList === true;
    return { n, channel, alert_id: alertId, stage, action, message, due_at: notBefore, is_list };
  });
  await trx.raw(
    `insert into alerts.outbox (channel, alert_id, stage, action, message, due_at, is_list)
     select g.channel, g.alert_id, g.stage, g.action, g.message,
            -- What is over is not told before the lists of it: a list that came later would open its incident again.
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

/** Takes back what nobody was told yet of alerts that are over: no message, and no place in a digest. */
export async function dropUnsent(trx: Knex, alertIds: readonly number[]): Promise<void> {
  // An attempt that is under way, or was cut off, may have been heard.
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

/** Where a later stage of an alert is told. */
export interface Overtaken {
  alertId: number;
  channels: readonly string[];
}

/**
 * Takes back what waits for its time, a digest or a storm's list, and has been overtaken by a later stage: on the
 * channels where that one is told, since nobody else would hear of the alert at all.
 */
export async function dropOvertaken(trx: Knex, overtaken: readonly Overtaken[]): Promise<void> {
  const pairs = overtaken.flatMap(({ alertId, channels }) =>
    channels.map((channel) => ({ alertId, channel })),
  );
  if (pairs.length === 0) return;
  const bindings = [
    sqlArray(pairs.map(({ alertId }) => alertId)),
    sqlArray(pairs.map(({ channel }) => channel)),
  ];
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

/** On whose daily lists each of these alerts stood as something to do. One statement. */
export async function digestChannels(
  trx: Knex,
  alertIds: readonly number[],
): Promise<Map<number, string[]>> {
  const { rows } = await trx.raw<{ rows: { alert_id: string; channels: string[] }[] }>(
    // A renewal that was only waiting was counted there and asked nobody for anything.
    `select i.alert_id, array_agg(distinct i.channel order by i.channel) as channels
     from alerts.digest_items i join alerts.alerts a on a.id = i.alert_id
     where i.alert_id = any(?::bigint[]) and i.told_at is not null
       and (a.rule = 'decline' or i.stage = 'final' or starts_with(i.stage, 'last-retry:'))
     group by i.alert_id`,
    [sqlArray(alertIds)],
  );
  return new Map(rows.map(({ alert_id: id, channels }) => [Number(id), channels]));
}

/** On which channels each of these alerts was told, may have been told, or is about to be. One statement. */
export async function toldChannels(
  trx: Knex,
  alertIds: readonly number[],
): Promise<Map<number, string[]>> {
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

/** On which channels each of these alerts was told in a list of its storm. One statement. */
export async function stormListedChannels(
  trx: Knex,
  alertIds: readonly number[],
): Promise<Map<number, string[]>> {
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

/** Keeps stages for the next digests of their channels. One statement; idempotent. */
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

export interface Resend {
  /** Of one alert; left out: of all. */
  alertId?: number;
  /** To one channel; left out: to all. */
  channel?: string;
  /** Of those, the messages that were written since then. */
  withinHours: number;
}

/**
 * Puts messages that were given up back to be sent, with the keys they had: what arrived all the same is known as a
 * repeat, and what is over meanwhile is dropped when its turn comes. Gives back how many, by channel. One statement;
 * idempotent.
 */
export async function resendFailed(
  db: Knex,
  { alertId, channel, withinHours }: Resend,
): Promise<Record<string, number>> {
  const { rows } = await db.raw<{ rows: { channel: string; n: string }[] }>(
    `with again as (
       update alerts.outbox set state = 'pending', attempts = 0, next_attempt_at = null, last_error = null,
              due_at = now()
       where state = 'failed' and created_at > now() - make_interval(hours => :withinHours)
         and (:alertId::bigint is null or alert_id = :alertId) and (:channel::text is null or channel = :channel)
       returning channel
     )
     select channel, count(*) as n from again group by channel order by channel`,
    { alertId: alertId ?? null, channel: channel ?? null, withinHours },
  );
  return Object.fromEntries(rows.map(({ channel: name, n }) => [name, Number(n)]));
}
