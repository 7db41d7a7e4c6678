import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";

/** A state of a group of fields, as the history knows it. */
export interface StateKey {
  group: string;
  id: string;
  /** Fixed form. */
  updatedAt: string;
  hash: string;
}

export interface HistoryState {
  updatedAt: Date;
  hash: string;
  /** Its first source: `event:<seq>`, `fetch`, `import`, `reconcile:<run>` or `heal`. */
  cause: string;
  recordedAt: Date;
  data: Record<string, unknown>;
}

/** The states around a state in the history. */
export interface Neighbours {
  /** The state itself; null: it is not in the history. */
  itself: HistoryState | null;
  /** The previous state: comparing the two gives the changes. */
  before: HistoryState | null;
  /** The newest of the later ones that were known when this one came: against this it was late. */
  knownLater: HistoryState | null;
  /** The newest of all, if it is not this one. */
  newest: HistoryState | null;
}

/**
 * The neighbours of states in the history, in their order. `knownAt`: the time up to which the history counts as known,
 * for a state that came from elsewhere. One statement, by the history's key.
 */
export async function readNeighbours(db: Knex, keys: readonly StateKey[], knownAt: Date): Promise<Neighbours[]> {
  if (keys.length === 0) return [];
  const { rows } = await db.raw<{ rows: NeighbourRow[] }>(
    `select to_jsonb(k) as itself, to_jsonb(b) as before, to_jsonb(l) as "knownLater", to_jsonb(last) as newest
     from unnest(:groups::text[], :ids::text[], :ats::timestamptz[], :hashes::text[])
       with ordinality as g(state_group, id, at, hash, place)
     left join lateral (
       select ${stateColumns} from mirror.versions v
       where v.resource = g.state_group and v.id = g.id and v.source_updated_at = g.at and v.content_hash = g.hash
       order by v.twin limit 1
     ) k on true
     left join lateral (
       select ${stateColumns} from mirror.versions v
       where v.resource = g.state_group and v.id = g.id and v.source_updated_at <= g.at
         and (v.source_updated_at < g.at or (v.content_hash <> g.hash and v.recorded_at < k.recorded_at))
       order by v.source_updated_at desc, v.seq desc limit 1
     ) b on true
     left join lateral (
       select ${stateColumns} from mirror.versions v
       where v.resource = g.state_group and v.id = g.id and v.source_updated_at > g.at
         and v.recorded_at <= coalesce(k.recorded_at, :knownAt::timestamptz)
       order by v.source_updated_at desc, v.seq desc limit 1
     ) l on true
     left join lateral (
       select ${stateColumns} from mirror.versions v
       where v.resource = g.state_group and v.id = g.id and v.source_updated_at > g.at
       order by v.source_updated_at desc, v.seq desc limit 1
     ) last on true
     order by g.place`,
    {
      groups: sqlArray(keys.map(({ group }) => group)),
      ids: sqlArray(keys.map(({ id }) => id)),
      ats: sqlArray(keys.map(({ updatedAt }) => updatedAt)),
      hashes: sqlArray(keys.map(({ hash }) => hash)),
      knownAt,
    },
  );
  return rows.map(({ itself, before, knownLater, newest }) => ({
    itself: stateOf(itself),
    before: stateOf(before),
    knownLater: stateOf(knownLater),
    newest: stateOf(newest),
  }));
}

const stateColumns = "v.source_updated_at, v.content_hash, v.cause, v.recorded_at, v.data, v.resource, v.id";

/** The states that an event was the first to show, of its object and of embedded ones. One statement. */
export async function statesOfCause(
  db: Knex,
  cause: string,
  object: { resource: string; id: string },
): Promise<(StateKey & { data: Record<string, unknown> })[]> {
  const { rows } = await db.raw<{
    rows: { resource: string; id: string; at: Date; hash: string; data: Record<string, unknown> }[];
  }>(
    `select v.resource, v.id, v.source_updated_at as at, v.content_hash as hash, v.data
     from mirror.versions v
     where v.cause = :cause and (
       (v.resource in (:resource::text, :resource::text || '.dunning', :resource::text || '.detail') and v.id = :id)
       or (:resource::text = 'order' and v.resource = 'transaction.inline'
           and v.id = any(array(select t.id from mirror.transactions t where t.order_id = :id limit 500))))
     order by v.seq limit 100`,
    { cause, ...object },
  );
  return rows.map(({ resource: group, id, at, hash, data }) => ({
    group,
    id,
    updatedAt: at.toISOString(),
    hash,
    data,
  }));
}

interface StoredState {
  source_updated_at: string;
  content_hash: string;
  cause: string;
  recorded_at: string;
  data: Record<string, unknown>;
}

type NeighbourRow = Record<keyof Neighbours, StoredState | null>;

const stateOf = (stored: StoredState | null): HistoryState | null =>
  stored === null
    ? null
    : {
        updatedAt: new Date(stored.source_updated_at),
        hash: stored.content_hash,
        cause: stored.cause,
        recordedAt: new Date(stored.recorded_at),
        data: stored.data,
      };
