import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { storableJson } from "../platform/storable-text.ts";
import type { AlertMessage } from "./message.ts";

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
