import type { Knex } from "knex";
import type { EventState } from "./claim.ts";
import { type EventRow, listEventsOf } from "./queries.ts";
import { eventPositionAt } from "./read-by-number.ts";

/** A filter of events; empty, it finds all. */
export interface EventSearch {
  state?: EventState;
  type?: string;
  resourceId?: string;
  eventId?: string;
  receivedFrom?: Date;
  receivedUntil?: Date;
  /** Events before this sequence number. */
  before?: number;
}

export interface FoundEvents {
  events: EventRow[];
  /**
   * Number at which the search ran out of time: continue before it. Null: the search is complete, or the page is full.
   */
  stoppedAt: number | null;
}

interface SearchLimits {
  limit: number;
  /** The most events from an index that are checked: a rare type must not read the inbox of years. */
  lookThrough?: number;
}

const defaultLookThrough = 100_000;

/**
 * The newest events that match. Fast at any size: state, object and id have an index, and all other conditions are
 * checked on `lookThrough` events. Up to seven statements; outside of a transaction.
 */
export async function searchEvents(
  db: Knex,
  search: EventSearch,
  { limit, lookThrough = defaultLookThrough }: SearchLimits,
): Promise<FoundEvents> {
  const span = await spanOf(db, search);
  const seqs = await matchingSeqs(db, { search, span, limit, lookThrough });
  const events = (await listEventsOf(db, seqs)).reverse();
  const stoppedAt = seqs.length === limit ? null : await stopOf(db, { search, span, limit, lookThrough });
  return { events, stoppedAt };
}

/** The newest events that match, however far back they are. As many statements as they are far. */
export async function newestEvents(db: Knex, search: EventSearch, limits: SearchLimits): Promise<EventRow[]> {
  const events: EventRow[] = [];
  for (let before: number | null | undefined = search.before; before !== null;) {
    const from: EventSearch = before === undefined ? search : { ...search, before };
    const found = await searchEvents(db, from, { ...limits, limit: limits.limit - events.length });
    events.push(...found.events);
    before = found.stoppedAt;
  }
  return events;
}

/** Numbers above `after` and below `before`; null: no bound. */
export interface NumberSpan {
  after: number | null;
  before: number | null;
}

/** Rows with a number above a position are dated at most twice a minute before its time (`eventPositionAt`). */
const untilMarginMs = 120_000;

/** The numbers between which the events of a search are. Two statements for each time. */
export async function spanOf(db: Knex, { before, receivedFrom, receivedUntil }: EventSearch): Promise<NumberSpan> {
  const after = receivedFrom === undefined ? null : await eventPositionAt(db, receivedFrom);
  const late =
    receivedUntil === undefined
      ? null
      : (await eventPositionAt(db, new Date(receivedUntil.getTime() + untilMarginMs))) + 1;
  const bounds = [before, late].filter((bound) => typeof bound === "number");
  return { after, before: bounds.length === 0 ? null : Math.min(...bounds) };
}

export interface SpannedSearch {
  search: EventSearch;
  span: NumberSpan;
  limit: number;
  lookThrough: number;
}

interface Sql {
  sql: string;
  bindings: Record<string, string | number | Date>;
}

/** The numbers of events that match, descending. One statement. */
export async function matchingSeqs(db: Knex, spanned: SpannedSearch): Promise<number[]> {
  const { sql, bindings } = matching(spanned);
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `select seq from (${sql}) m order by seq desc limit :limit`,
    { ...bindings, limit: spanned.limit },
  );
  return rows.map(({ seq }) => Number(seq));
}

/** SQL that selects the matching numbers, without an order or a limit of its own. */
function matching({ search, span, lookThrough }: Omit<SpannedSearch, "limit">): Sql {
  const { sql, bindings } = candidates(search, span, lookThrough);
  const conditions: string[] = [];
  const { state, type, resourceId, receivedFrom, receivedUntil } = search;
  // Fields that are not copied next to the object are in the receipt (0014_event_times.sql).
  const ofReceipt = (copy: string, column: string) =>
    `coalesce(c.${copy}, (select r.${column} from inbox.receipts r where r.seq = c.seq))`;
  if (state !== undefined) conditions.push("c.state = :state");
  if (resourceId !== undefined) conditions.push("c.resource_id = :resourceId");
  if (type !== undefined) conditions.push(`${ofReceipt("event_type", "type")} = :type`);
  if (receivedFrom !== undefined) {
    conditions.push(`${ofReceipt("arrived_at", "received_at")} >= :receivedFrom`);
  }
  if (receivedUntil !== undefined) {
    conditions.push(`${ofReceipt("arrived_at", "received_at")} < :receivedUntil`);
  }
  const where = conditions.length === 0 ? "" : ` where ${conditions.join(" and ")}`;
  return {
    sql: `select c.seq from (${sql}) c${where}`,
    bindings: {
      ...bindings,
      ...(state === undefined ? {} : { state }),
      ...(resourceId === undefined ? {} : { resourceId }),
      ...(type === undefined ? {} : { type }),
      ...(receivedFrom === undefined ? {} : { receivedFrom }),
      ...(receivedUntil === undefined ? {} : { receivedUntil }),
    },
  };
}

/** SQL of the newest rows of `inbox.progress` that an index finds. */
function candidates(
  { state, resourceId, eventId }: EventSearch,
  { after, before }: NumberSpan,
  lookThrough: number,
): Sql {
  const within = [...(after === null ? [] : ["p.seq > :after"]), ...(before === null ? [] : ["p.seq < :before"])];
  const { from, where } = indexOf({ state, resourceId, eventId });
  const conditions = [...within, ...where];
  return {
    sql: `select p.* from ${from} p ${conditions.length === 0 ? "" : `where ${conditions.join(" and ")} `}
          order by p.seq desc limit :lookThrough`,
    bindings: {
      lookThrough,
      ...(after === null ? {} : { after }),
      ...(before === null ? {} : { before }),
      ...(state === undefined ? {} : { state }),
      ...(resourceId === undefined ? {} : { resourceId }),
      ...(eventId === undefined ? {} : { eventId }),
    },
  };
}

/** States that few events are in, each with an index by number. */
const byNumber: readonly EventState[] = ["received", "dead"];

function indexOf({
  state,
  resourceId,
  eventId,
}: {
  [Name in "state" | "resourceId" | "eventId"]: EventSearch[Name] | undefined;
}): { from: string; where: string[] } {
  if (eventId !== undefined) {
    return {
      from: "inbox.progress",
      where: ["p.seq = any(array(select r.seq from inbox.receipts r where r.event_id = :eventId limit 1000))"],
    };
  }
  // Fenced: a planner that takes them for many would go through all numbers instead, as their indexes have no order.
  if (resourceId !== undefined) {
    return {
      from: "(select * from inbox.progress where resource_id = :resourceId offset 0)",
      where: [],
    };
  }
  if (state === "failed") {
    return { from: "(select * from inbox.progress where state = 'failed' offset 0)", where: [] };
  }
  const known = byNumber.find((name) => name === state);
  return { from: "inbox.progress", where: known === undefined ? [] : [`p.state = '${known}'`] };
}

/** The number at which the candidates end before the inbox does; null where they do not. One statement. */
async function stopOf(db: Knex, { search, span, lookThrough }: SpannedSearch): Promise<number | null> {
  const { sql, bindings } = candidates(search, span, lookThrough);
  const { rows } = await db.raw<{ rows: [{ n: string; last: string | null }] }>(
    `select count(*) as n, min(c.seq) as last from (${sql}) c`,
    bindings,
  );
  const [{ n, last }] = rows;
  return Number(n) < lookThrough || last === null ? null : Number(last);
}
