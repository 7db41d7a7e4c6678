import type { Knex } from "knex";
import { raise } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { readMark, writeMark } from "../marks.ts";
import { noveltyCondition, remember } from "../novelties.ts";
import { duplicateIdCondition, isKnownType } from "../rules/events.ts";

/** In one step; what is left waits for the next. */
const maxEvents = 20_000;
const maxDuplicates = 20;
/** A number is taken before its row is committed: what comes after a row of this age has a higher one. */
const settledAfterSeconds = 15;

/**
 * Looks through the events that came since the last time: how many each hour brought, types and versions that are new,
 * and ids that came with different bytes. Apart from receiving and applying, so that neither pays for it. Gives back
 * whether there is more. Needs a transaction.
 */
export async function lookThroughInbox(
  trx: Knex.Transaction,
  desk: AlertDesk,
): Promise<{ more: boolean }> {
  const mark = await readMark<{ seq: number }>(trx, "inbox");
  const from = mark?.seq ?? 0;
  const to = await upperBound(trx, from);
  if (to === null) return { more: false };
  await countHours(trx, { from, to });
  await tellNovelties(trx, desk, { from, to });
  await tellDuplicates(trx, desk, { from, to });
  await writeMark(trx, "inbox", { seq: to });
  return { more: to - from >= maxEvents };
}

interface Range {
  /** Exclusive. */
  from: number;
  to: number;
}

async function upperBound(trx: Knex, from: number): Promise<number | null> {
  const { rows } = await trx.raw<{ rows: { seq: string | null }[] }>(
    `select max(seq) as seq from (
       select seq, received_at from inbox.receipts where seq > ? order by seq limit ?) next
     where received_at < now() - make_interval(secs => ?)`,
    [from, maxEvents, settledAfterSeconds],
  );
  const seq = rows[0]?.seq ?? null;
  return seq === null ? null : Number(seq);
}

async function countHours(trx: Knex, { from, to }: Range): Promise<void> {
  await trx.raw(
    `insert into alerts.event_hours as h (hour, events)
     select date_trunc('hour', coalesce(event_created_at, received_at), 'UTC'), count(*) from inbox.receipts
     where seq > ? and seq <= ? group by 1 order by 1
     on conflict (hour) do update set events = h.events + excluded.events`,
    [from, to],
  );
}

async function tellNovelties(trx: Knex.Transaction, desk: AlertDesk, range: Range): Promise<void> {
  const { rows } = await trx.raw<{ rows: { type: string; api_version: string | null }[] }>(
    `select distinct coalesce(left(type, 200), '(none)') as type, left(api_version, 200) as api_version
     from inbox.receipts where seq > ? and seq <= ?`,
    [range.from, range.to],
  );
  const types = [...new Set(rows.map(({ type }) => type))].filter((type) => !isKnownType(type));
  const versions = [...new Set(rows.flatMap(({ api_version: version }) => version ?? []))];
  const isFirst =
    (await trx("alerts.seen_values").where("kind", "event.api_version").first()) === undefined;
  const fresh = await remember(trx, [
    ...types.map((value) => ({ kind: "event.type", value })),
    ...versions.map((value) => ({ kind: "event.api_version", value })),
  ]);
  // The version that a deployment begins with is no news.
  const news = fresh.filter(({ kind }) => !(isFirst && kind === "event.api_version"));
  const at = desk.clock.now();
  const { rules } = desk.settings;
  await raise(
    trx,
    desk,
    news.map((novelty) => noveltyCondition(rules, novelty, at)),
    "sweep",
  );
}

async function tellDuplicates(trx: Knex.Transaction, desk: AlertDesk, range: Range): Promise<void> {
  const { rows } = await trx.raw<{ rows: { event_id: string; bodies: string }[] }>(
    `select r.event_id, (select count(*) from inbox.receipts x where x.event_id = r.event_id) as bodies
     from inbox.receipts r
     where r.seq > ? and r.seq <= ?
       and exists (select from inbox.receipts x where x.event_id = r.event_id and x.seq < r.seq)
     group by r.event_id order by r.event_id limit ?`,
    [range.from, range.to, maxDuplicates],
  );
  const at = desk.clock.now();
  const { rules } = desk.settings;
  await raise(
    trx,
    desk,
    rows.map(({ event_id: eventId, bodies }) =>
      duplicateIdCondition(rules, { eventId, bodies: Number(bodies) }, at),
    ),
    "sweep",
  );
}
