import { failedEventsOf, listEventsOf } from "../../../core/inbox/queries.ts";
import { type FieldBlame, blameOf, inOrder } from "../../../core/mirror/blame/blame.ts";
import { readComputedColumns } from "../../../core/mirror/blame/computed-columns.ts";
import { changesBetween } from "../../../core/mirror/blame/fields.ts";
import {
  type KnownObject,
  type KnownState,
  readObject,
  readStatesOf,
  withoutPersons,
} from "../../../core/mirror/blame/object-history.ts";
import { eventOf, lossOfRefused, lossesOf } from "../../../core/mirror/blame/losses.ts";
import { type Winners, editedColumns, winnersAsOf, winnersNow } from "../../../core/mirror/blame/winners.ts";
import { customerNames } from "../../../core/mirror/customer-names.ts";
import { findChargebacks, listRelated, relations } from "../../../core/mirror/look-up.ts";
import { resourceNamed } from "../../../core/mirror/resources.ts";
import { bookedFields } from "../../../core/mirror/resources/resource.ts";
import type { ObjectKey } from "../../../core/mirror/snapshot.ts";
import type { Answers } from "../../../app/answers.ts";
import { mayReadTexts } from "../../../app/dashboard/elements/personal.ts";
import type { PageDeps, Visitor } from "../../../app/dashboard/route.ts";
import { objectPath } from "../../../app/dashboard/elements/values.ts";
import { mostFailed } from "./failed-events-view.ts";
import type { ObjectPage } from "./object-view.ts";
import { pastOf, stopsOf } from "./past.ts";
import { recognize } from "./recognized.ts";
import type { EventsBySeq } from "./source.ts";
import type { TimelineEntry, TimelineSection } from "./timeline-view.ts";
import { nouns } from "./words.ts";

const timelineSize = 25;
const relatedRows = 10;

interface Asked {
  key: ObjectKey;
  query: URLSearchParams;
  visitor: Visitor;
}

/**
 * Reads all that an object's page shows to this visitor; null where the mirror does not know the object. Throws
 * `PageError` for a time that cannot be read. About a dozen statements, each by an index.
 */
export async function readObjectPage(
  { db, timeZone, findingsOfObject }: Pick<PageDeps, "db" | "timeZone"> & Pick<Answers, "findingsOfObject">,
  { key, query, visitor }: Asked,
): Promise<ObjectPage | null> {
  const whole = await readObject(db, key);
  if (whole === null) return null;
  const showsPersons = visitor.permissions.has("person:read");
  const edited = editedColumns(whole, winnersNow(whole));
  const object = showsPersons ? whole : withoutPersons(whole);
  const stops = stopsOf(object);
  const at = pastOf(query, stops);
  const known = at === null ? object : knownAt(object, at);
  const winners = at === null ? winnersNow(known) : winnersAsOf(known, at);
  const computed = await readComputedColumns(db, key.resource, winners);
  const fields = inReadingOrder(key, blameOf(known, winners, computed));
  const currency = ["currency", "plan.currency"]
    .map((name) => fields.find(({ field }) => field === name)?.value)
    .find((value) => typeof value === "string");
  const events = await eventsOf(db, [...known.states, ...known.refused]);
  const readsTexts = mayReadTexts(visitor.permissions);
  const style = { currency: currency ?? null, timeZone, showsPersons, readsTexts };
  const path = objectPath(key.resource, key.id);
  const noun = (nouns[key.resource] ?? key.resource).toLowerCase();
  const related = at === null ? await relatedOf(db, key) : [];
  const order = at === null && key.resource === "order" ? key.id : null;
  const listed = related.flatMap(({ rows }) => rows);
  const recognized = await recognize(db, listed, { showsPersons, order });
  const person = await personOf(db, fields, { key, showsPersons });
  const timeline = at === null ? await timelineOf(db, { object, winners, query, showsPersons }) : null;
  return {
    object: known,
    fields,
    edited,
    person,
    charge: order === null ? null : (recognized.charges.get(order) ?? null),
    recognized,
    related,
    chargebacks: at === null ? await chargebacksOf(db, key, related, fields) : [],
    findings: (await findingsOfObject?.(db, key)) ?? [],
    failed: at === null ? await failedEventsOf(db, key, mostFailed + 1) : [],
    mayHeal: visitor.permissions.has("object:heal"),
    style,
    past: { path, stops, at, timeZone },
    blame: { fields, events, style, noun },
    timeline: timeline && { ...timeline, style, noun, path, query },
  };
}

type Db = PageDeps["db"];

/** An object as it was known at a time. */
const knownAt = (object: KnownObject, at: string): KnownObject => ({
  ...object,
  states: object.states.filter(({ recordedAt }) => recordedAt <= at),
  refused: object.refused.filter(({ recordedAt }) => recordedAt <= at),
});

/** Fields that the books depend on first, then the object's order. */
function inReadingOrder({ resource }: ObjectKey, fields: readonly FieldBlame[]): FieldBlame[] {
  const first = ["status", ...bookedFields(resourceNamed(resource))];
  const placeOf = ({ field }: FieldBlame): number => {
    const place = first.indexOf(field);
    return place < 0 ? first.length : place;
  };
  return fields.filter(({ field }) => field !== "id").toSorted((a, b) => placeOf(a) - placeOf(b));
}

async function eventsOf(db: Db, states: readonly KnownState[]): Promise<EventsBySeq> {
  const seqs = states.flatMap(({ cause }) => eventOf(cause) ?? []);
  const rows = await listEventsOf(db, [...new Set(seqs)]);
  return new Map(rows.map((row) => [row.seq, row]));
}

const relatedOf = (db: Db, { resource, id }: ObjectKey) =>
  Promise.all(
    relations
      .filter(({ of }) => of === resource)
      .map(async (relation) => {
        const rows = await listRelated(db, relation, id, { after: null, limit: relatedRows + 1 });
        return {
          name: relation.name,
          rows: rows.slice(0, relatedRows),
          hasMore: rows.length > relatedRows,
        };
      }),
  );

async function chargebacksOf(
  db: Db,
  { resource, id }: ObjectKey,
  related: ObjectPage["related"],
  fields: readonly FieldBlame[],
): Promise<ObjectPage["chargebacks"]> {
  const order = fields.find(({ field }) => field === "order_id")?.value;
  const keys = [
    ...(resource === "order" || resource === "transaction" ? [id] : []),
    ...(typeof order === "string" ? [order] : []),
    ...related.flatMap(({ name, rows }) => (name === "orders" ? rows.map((row) => row.id) : [])),
  ];
  return findChargebacks(db, keys);
}

async function personOf(
  db: Db,
  fields: readonly FieldBlame[],
  { key, showsPersons }: { key: ObjectKey; showsPersons: boolean },
): Promise<ObjectPage["person"]> {
  const customer = fields.find(({ field }) => field === "customer_id")?.value;
  if (!showsPersons || key.resource === "customer" || typeof customer !== "string") return null;
  return (await customerNames(db, [customer])).get(customer) ?? null;
}

interface AskedTimeline {
  object: KnownObject;
  winners: Winners;
  query: URLSearchParams;
  showsPersons: boolean;
}

type ReadTimeline = Omit<TimelineSection, "style" | "noun" | "path" | "query">;

async function timelineOf(db: Db, { object, winners, query, showsPersons }: AskedTimeline): Promise<ReadTimeline> {
  const before = readTime(query.get("before"));
  const older = before === null || !object.hasMore ? [] : await olderStates(db, object, before, showsPersons);
  const { entries, next } = timelinePage(together(object.states, older), { winners, before });
  const refused = object.refused.map((state) => ({ state, loss: lossOfRefused(state) }));
  const events = await eventsOf(db, [...entries.map(({ state }) => state), ...object.refused]);
  return { entries, older: next, refused, heals: object.heals, events };
}

const readTime = (text: string | null): string | null =>
  text !== null && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(text) ? text : null;

/** Without repeats. */
function together(states: readonly KnownState[], older: readonly KnownState[]): KnownState[] {
  const keyOf = ({ group, updatedAt, hash, recordedAt }: KnownState): string =>
    [group, updatedAt, hash, recordedAt].join("|");
  const known = new Set(states.map(keyOf));
  return [...states, ...older.filter((state) => !known.has(keyOf(state)))];
}

/** One more than a page of each group, so that the last has a state to compare with. */
async function olderStates(
  db: Db,
  object: KnownObject,
  before: string,
  showsPersons: boolean,
): Promise<readonly KnownState[]> {
  const { states } = await readStatesOf(db, object, { before, limit: timelineSize + 1 });
  return showsPersons ? states : withoutPersons({ ...object, states }).states;
}

/**
 * States from before a time, the newest first, each with its changes against the next lower version of its group.
 * States of one time are on one page, so that the next page can begin at a time.
 */
function timelinePage(
  states: readonly KnownState[],
  { winners, before }: { winners: Winners; before: string | null },
): { entries: TimelineEntry[]; next: string | null } {
  const chains = new Map<string, KnownState[]>();
  for (const state of inOrder(states)) {
    const chain = chains.get(state.group);
    if (chain === undefined) chains.set(state.group, [state]);
    else chain.push(state);
  }
  const losses = new Map([...chains].flatMap(([group, chain]) => [...lossesOf(chain, winners.get(group))]));
  const all = states
    .filter(({ updatedAt }) => before === null || updatedAt < before)
    .toSorted((a, b) => compare(b.updatedAt, a.updatedAt) || compare(b.version, a.version));
  const lastTime = all[timelineSize - 1]?.updatedAt;
  const shown = lastTime === undefined ? all : all.filter((state) => state.updatedAt >= lastTime);
  const entries = shown.map((state): TimelineEntry => {
    const chain = chains.get(state.group) ?? [];
    const previous = chain[chain.indexOf(state) + 1];
    return {
      state,
      isFirst: previous === undefined,
      changes: changesBetween(previous?.content ?? null, state.content),
      loss: losses.get(state) ?? null,
      isShown: winners.get(state.group)?.state === state,
    };
  });
  return { entries, next: shown.length < all.length ? (lastTime ?? null) : null };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
