import type { Knex } from "knex";
import { isDisputeType } from "../../../core/contract/event-envelope.ts";
import { findMisdated } from "../../../core/mirror/misdated.ts";
import { resourceOfType } from "../../../core/mirror/resources.ts";
import type { DeadEvent, FutureState } from "../../../core/mirror/listener.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { AlertContext, FoundBy } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import { raiseFound } from "../run-watch.ts";
import type { AlertSettings } from "../settings.ts";
import { committedAfterSeconds, readWatermark, writeWatermark } from "../store.ts";
import type { End } from "../condition.ts";
import type { Condition } from "../timeline.ts";
import { misdated } from "./misdated.ts";
import { remember, tooManyValuesCondition, unknownValueCondition } from "./unknown-values.ts";
import { endsByAcknowledging, headlineText, shortened, withoutIds } from "./wording.ts";

/** Reports events that became dead. Belongs in the transaction that marks them as dead. */
export async function reportDead(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  dead: readonly DeadEvent[],
): Promise<void> {
  if (dead.length === 0) return;
  const reasons = new Map(dead.map(({ seq, reason }) => [seq, reason]));
  const rows = await trx("inbox.receipts")
    .whereIn("seq", [...reasons.keys()])
    .select<{ seq: string; event_id: string; type: string | null }[]>("seq", "event_id", "type");
  const at = alertContext.clock.now();
  const conditions = rows.map(({ seq, event_id: eventId, type }) => {
    const reason = reasons.get(Number(seq)) ?? "no reason given";
    const event = { eventId, seq: Number(seq), type: type?.slice(0, 80) ?? null, reason };
    return deadEventCondition(alertContext.settings.rules, event, at);
  });
  await raise(trx, alertContext, conditions, "event");
}

/** Resolves the alerts about events that were replayed and are no longer dead. Needs a transaction; idempotent. */
export async function endDeadEvents(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const { rows } = await trx.raw<{
    rows: { key: string; seq: string; event_type: string | null }[];
  }>(
    `select a.key, p.seq, a.facts->>'event_type' as event_type
     from alerts.alerts a join inbox.progress p
         on p.seq = case when a.facts->>'seq' ~ '^[0-9]{1,18}$' then (a.facts->>'seq')::bigint end
     where a.rule = 'event_dead' and a.state <> 'resolved' and starts_with(a.key, 'dead:')
       and p.state in ('applied', 'stale', 'ignored') limit 1000`,
  );
  const at = alertContext.clock.now();
  const cleared = rows.map(({ key, seq, event_type: type }) => {
    return { key, at, end: deadEventEnd({ seq, type }) };
  });
  await clear(trx, alertContext, cleared, "sweep");
}

/**
 * Reports states that are dated in the future: one alert for all objects that wait, since one clock is the cause.
 * Belongs in the transaction that stores them. Costs nothing without such states. Idempotent.
 */
export async function reportUnbelieved(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  unbelieved: readonly FutureState[],
  foundBy: FoundBy,
): Promise<void> {
  if (unbelieved.length === 0) return;
  const found = await findMisdated(trx);
  if (found === null) return;
  await raiseFound(trx, alertContext, misdated, { found }, foundBy);
}

/** The most events of one step; the rest waits for the next. */
const maxEvents = 20_000;
const maxDuplicates = 20;

/** Readings from the inbox. */
export interface InboxQuestions {
  /** The first number of the partition before the one of this number. */
  firstNumberOfPrevious(db: Knex, seq: number): Promise<number>;
}

/**
 * Scans the events that arrived since the last scan: how many each hour brought, new types and versions, and ids that
 * arrived with different bytes. It is separate from receiving and applying, so that neither pays for it. Returns
 * whether there is more. Needs a transaction.
 */
export async function scanInbox(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { firstNumberOfPrevious }: InboxQuestions,
): Promise<{ more: boolean }> {
  const mark = await readWatermark<{ seq: number }>(trx, "inbox");
  const from = mark?.seq ?? 0;
  const { to, events } = await nextEvents(trx, from);
  if (to === null) return { more: false };
  await countHours(trx, { from, to });
  await tellUnknownValues(trx, alertContext, { from, to });
  // An id is searched in the partition of its event and the one before. Each older one would cost another look-up.
  const since = await firstNumberOfPrevious(trx, from);
  await tellDuplicates(trx, alertContext, { from, to, since });
  await writeWatermark(trx, "inbox", { seq: to });
  return { more: events === maxEvents };
}

interface Range {
  /** Exclusive. */
  from: number;
  to: number;
}

/** The last of the events to scan, and how many they are. */
async function nextEvents(trx: Knex, from: number): Promise<{ to: number | null; events: number }> {
  const { rows } = await trx.raw<{ rows: { seq: string | null; n: string }[] }>(
    `select max(seq) as seq, count(*) as n from (
       select seq, received_at from inbox.receipts where seq > ? order by seq limit ?) next
     where received_at < now() - make_interval(secs => ?)`,
    [from, maxEvents, committedAfterSeconds],
  );
  const { seq = null, n = 0 } = rows[0] ?? {};
  return { to: seq === null ? null : Number(seq), events: Number(n) };
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

async function tellUnknownValues(trx: Knex.Transaction, alertContext: AlertContext, range: Range): Promise<void> {
  const { rows } = await trx.raw<{ rows: { type: string; api_version: string | null }[] }>(
    `select distinct coalesce(left(type, 200), '(none)') as type, left(api_version, 200) as api_version
     from inbox.receipts where seq > ? and seq <= ?`,
    [range.from, range.to],
  );
  const types = [...new Set(rows.map(({ type }) => type))].filter((type) => !isKnownType(type));
  const versions = [...new Set(rows.flatMap(({ api_version: version }) => version ?? []))];
  const isFirst = (await trx("alerts.seen_values").where("kind", "event.api_version").first()) === undefined;
  const { fresh, fullKinds } = await remember(trx, [
    ...types.map((value) => ({ kind: "event.type", value })),
    ...versions.map((value) => ({ kind: "event.api_version", value })),
  ]);
  // The version that a deployment starts with is not news.
  const news = fresh.filter(({ kind }) => !(isFirst && kind === "event.api_version"));
  const at = alertContext.clock.now();
  const { rules } = alertContext.settings;
  await raise(
    trx,
    alertContext,
    [
      ...news.map((novelty) => unknownValueCondition(rules, novelty, at)),
      ...fullKinds.map((kind) => tooManyValuesCondition(rules, kind, at)),
    ],
    "sweep",
  );
}

async function tellDuplicates(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { from, to, since }: Range & { since: number },
): Promise<void> {
  const { rows } = await trx.raw<{ rows: { event_id: string; bodies: string }[] }>(
    `select r.event_id, (select count(*) from inbox.receipts x where x.event_id = r.event_id) as bodies
     from inbox.receipts r
     where r.seq > ? and r.seq <= ?
       and exists (select from inbox.receipts x where x.event_id = r.event_id and x.seq < r.seq and x.seq >= ?)
     group by r.event_id order by r.event_id limit ?`,
    [from, to, since, maxDuplicates],
  );
  const at = alertContext.clock.now();
  const { rules } = alertContext.settings;
  await raise(
    trx,
    alertContext,
    rows.map(({ event_id: eventId, bodies }) => duplicateIdCondition(rules, { eventId, bodies: Number(bodies) }, at)),
    "sweep",
  );
}

type Rules = AlertSettings["rules"];

/** An event that became dead. */
export function deadEventCondition(
  rules: Rules,
  { eventId, seq, type, reason }: { eventId: string; seq: number; type: string | null; reason: string },
  at: Date,
): Condition {
  return {
    key: `dead:${eventId}`,
    rule: "event_dead",
    severity: rules.event_dead.severity,
    title: headlineText({
      lead: `1 event could not be applied (${shortened(type ?? "no type", 30)}, number ${seq})`,
      cause: shortened(withoutIds(reason)),
    }),
    advice:
      `Its change is missing from the mirror. "${tallyhook(`events show ${seq}`)}" shows the event and why it ` +
      `failed. Fix the cause, then run "${tallyhook(`events replay ${seq}`)}".`,
    facts: [
      { label: "Event", value: eventId },
      { label: "Reason", value: reason },
    ],
    storedFacts: { seq, event_type: type, reason },
    family: "dead",
    at,
  };
}

/** An event id that arrived with different bytes. */
export function duplicateIdCondition(
  rules: Rules,
  { eventId, bodies }: { eventId: string; bodies: number },
  at: Date,
): Condition {
  return {
    key: `event-id:${eventId}`,
    rule: "event_duplicate_id",
    severity: rules.event_duplicate_id.severity,
    title: headlineText({
      lead: `${counted(bodies, "different event", "different events")} have the same id`,
      next: "Ask the service",
    }),
    advice:
      `All were stored and applied. "${tallyhook(`events show ${eventId}`)}" shows them. Send that to the ` +
      `service's support: an id should name one event. ${endsByAcknowledging}`,
    facts: [
      { label: "Event", value: eventId },
      { label: "Bodies", value: String(bodies) },
    ],
    storedFacts: { event_id: eventId, bodies },
    family: "new-values",
    at,
  };
}

/**
 * Whether events of this type are understood. Any type about a resource of the mirror is, since only its object counts.
 * Events about webhook endpoints are known to change nothing.
 */
const isKnownType = (type: string): boolean =>
  resourceOfType(type) !== undefined || /^webhook_endpoint(?:\.|$)/.test(type) || isDisputeType(type);

/** The end of the alert about an event that was replayed. */
export function deadEventEnd({ seq, type }: { seq: string; type: string | null }): End {
  return {
    title: headlineText({ lead: `1 event is no longer dead (${shortened(type ?? "no type", 30)}, number ${seq})` }),
    advice:
      "The mirror has its change, or a newer one. Check whether others failed for the same reason: " +
      `"${tallyhook("events list --state dead")}".`,
  };
}
