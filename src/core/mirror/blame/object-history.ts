import type { Knex } from "knex";
import { type WireObject, isObject } from "../../contract/wire-types.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { mirrorResources, resourceNamed } from "../resources.ts";
import { type MirrorResource, namedGroups } from "../resources/resource.ts";
import { entryOrderedBy } from "../resources/transaction.ts";
import type { ObjectKey } from "../snapshot.ts";
import { versionOf } from "../version.ts";
import { withoutPersonalData, withoutPersonalField } from "../privacy/personal-data.ts";

/** A state of one group of fields, as it was first seen. Times in the fixed form of `canonicalTimestamp`. */
export interface KnownState {
  group: string;
  /** The object's own `updated_at`. */
  updatedAt: string;
  /** The service's `Date` of the answer that showed it first; null for an event. */
  observedAt: string | null;
  /** When this database recorded it. */
  recordedAt: string;
  /** `event:<seq>`, `fetch`, `import`, `reconcile:<run>` or `heal`. */
  cause: string;
  hash: string;
  content: WireObject;
  /** The version of its first sighting: a later sighting raises the row's version and leaves no trace here. */
  version: string;
}

/** A state that no row may show. */
export interface RefusedState extends KnownState {
  /** The heal that overruled it; null: it was dated in the future. */
  heal: number | null;
}

/** A person's decision to write the row as the service shows the object. */
export interface Heal {
  seq: number;
  at: Date;
  by: string;
  reason: string;
  changedColumns: string[];
}

/** Everything that the mirror knows about one object. */
export interface KnownObject extends ObjectKey {
  /** The mirror's row by its columns, as JSON; null where there is none. */
  row: WireObject | null;
  /** The newest states of each group first. */
  states: readonly KnownState[];
  /** Whether a group has more states than were read. */
  hasMore: boolean;
  refused: readonly RefusedState[];
  heals: readonly Heal[];
  /** When its customer was erased; null: not erased. */
  erasedAt: Date | null;
}

/** The most states of one group that are read together. */
const mostStates = 200;
const mostRefused = 50;
const mostHeals = 20;

/** Reads one object with its history; null where the mirror does not have it. Five statements. */
export async function readObject(db: Knex, object: ObjectKey): Promise<KnownObject | null> {
  const resource = resourceNamed(object.resource);
  const row = await readRow(db, resource, object.id);
  const { states, hasMore } = await readStatesOf(db, object, { limit: mostStates });
  const refused = await readRefused(db, resource, object.id);
  if (row === null && states.length === 0 && refused.length === 0) return null;
  const heals = await readHeals(db, object);
  const owner = resource.owner === null ? null : row?.[resource.owner];
  const erasedAt = typeof owner === "string" ? await readErasure(db, owner) : null;
  const { resource: name, id } = object;
  return { resource: name, id, row, states, hasMore, refused, heals, erasedAt };
}

async function readRow(db: Knex, { table }: MirrorResource, id: string): Promise<WireObject | null> {
  const { rows } = await db.raw<{ rows: { row: WireObject }[] }>(
    `select to_jsonb(t) as row from mirror.${table} t where t.id = ?`,
    [id],
  );
  return rows[0]?.row ?? null;
}

/** SQL for a time in the fixed form (`canonicalTimestamp`). */
export const fixedForm = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** The columns of a state `s` of the group `g`. */
const stateColumns = `g.name as group, ${fixedForm("s.source_updated_at")} as updated_at,
  ${fixedForm("s.observed_at")} as observed_at, ${fixedForm("s.recorded_at")} as recorded_at, s.cause,
  s.content_hash as hash, s.data as content`;

interface StoredState {
  group: string;
  updated_at: string;
  observed_at: string | null;
  recorded_at: string;
  cause: string;
  hash: string;
  content: WireObject;
  /** For an order's entry: the `updated_at` of the order that came with it. */
  order_at: string | null;
}

/**
 * The newest states of each group, by their own time; `before`: only those of an earlier time, fixed form. An entry of
 * an order is stored without the time of its order: it is taken from the order's state that came with it. One statement.
 */
export async function readStatesOf(
  db: Knex,
  { resource, id }: ObjectKey,
  { before = null, limit }: { before?: string | null; limit: number },
): Promise<{ states: KnownState[]; hasMore: boolean }> {
  const groups = namedGroups(resourceNamed(resource)).filter(({ inHistory }) => inHistory);
  const { rows } = await db.raw<{ rows: StoredState[] }>(
    `select ${stateColumns}, ${fixedForm("o.source_updated_at")} as order_at
     from unnest(?::text[]) as g(name)
     cross join lateral (
       select * from mirror.versions v
       where v.resource = g.name and v.id = ? and v.source_updated_at < coalesce(?::timestamptz, 'infinity')
       order by v.source_updated_at desc, v.content_hash desc, v.twin desc limit ?
     ) s
     left join lateral (
       select o.source_updated_at from mirror.versions o
       where g.name = 'transaction.inline' and o.resource = 'order' and o.id = s.data->>'order_id'
         and o.cause = s.cause
       order by abs(extract(epoch from o.recorded_at - s.recorded_at)) limit 1
     ) o on true`,
    [sqlArray(groups.map(({ group }) => group)), id, before, limit + 1],
  );
  const counts = new Map<string, number>();
  const shown = rows.filter(({ group }) => {
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    return count <= limit;
  });
  return { states: shown.map(stateOf), hasMore: shown.length < rows.length };
}

async function readRefused(db: Knex, resource: MirrorResource, id: string): Promise<RefusedState[]> {
  const { rows } = await db.raw<{ rows: (StoredState & { heal: string | null })[] }>(
    `select ${stateColumns}, s.heal, null as order_at
     from unnest(?::text[]) as g(name) join mirror.unbelieved s on s.resource = g.name
     where s.id = ? order by s.recorded_at desc limit ?`,
    [sqlArray(Object.keys(resource.groups)), id, mostRefused],
  );
  return rows.map((row) => ({
    ...stateOf(row),
    heal: row.heal === null ? null : Number(row.heal),
  }));
}

function stateOf(stored: StoredState): KnownState {
  const { group, updated_at: updatedAt, observed_at: observedAt, hash, content } = stored;
  const definition = groupDefinitions.get(group);
  const orderedBy =
    group === "transaction.inline"
      ? entryOrderedBy(observedAt, stored.order_at ?? updatedAt, updatedAt)
      : { updatedAt };
  return {
    group,
    updatedAt,
    observedAt,
    recordedAt: stored.recorded_at,
    cause: stored.cause,
    hash,
    content,
    version: versionOf({ ...orderedBy, observedAt, rank: definition?.rank?.(content) ?? 0, hash }),
  };
}

const groupDefinitions = new Map(mirrorResources.flatMap(({ groups }) => Object.entries(groups)));

async function readHeals(db: Knex, { resource, id }: ObjectKey): Promise<Heal[]> {
  const rows = await db("mirror.heals")
    .where({ id, resource })
    .orderBy("seq", "desc")
    .limit(mostHeals)
    .select<{ seq: string; healed_at: Date; healed_by: string; reason: string; columns: string[] }[]>(
      "seq",
      "healed_at",
      "healed_by",
      "reason",
      "changed_columns as columns",
    );
  return rows.map(({ seq, healed_at: at, healed_by: by, reason, columns }) => ({
    seq: Number(seq),
    at,
    by,
    reason,
    changedColumns: columns,
  }));
}

async function readErasure(db: Knex, customerId: string): Promise<Date | null> {
  const row = await db("mirror.erasures")
    .where({ customer_id: customerId })
    .first<{ first_at: Date } | undefined>("first_at");
  return row?.first_at ?? null;
}

/** An object as shown to a person without the right to personal data: as after an erasure. */
export function withoutPersons(object: KnownObject): KnownObject {
  const versionColumns = new Set(
    Object.values(resourceNamed(object.resource).groups).map(({ versionColumn }) => versionColumn),
  );
  const row =
    object.row &&
    Object.fromEntries(
      Object.entries(object.row).flatMap(([column, value]) => {
        if (versionColumns.has(column)) return [[column, value]];
        const kept = withoutPersonalField(column, value);
        return kept === undefined ? [] : [[column, kept]];
      }),
    );
  return {
    ...object,
    row,
    states: object.states.map(impersonal),
    refused: object.refused.map((state) => ({ ...impersonal(state), heal: state.heal })),
  };
}

function impersonal(state: KnownState): KnownState {
  const content = withoutPersonalData(state.content);
  return { ...state, content: isObject(content) ? content : ({} satisfies WireObject) };
}
