import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import { redactErased } from "../privacy/erased-people.ts";
import { decode, mirrorResources } from "../resources.ts";
import type { GroupState, ObjectKey, Observation } from "../snapshot.ts";
import { isSettledBy, timeOfVersion } from "../version.ts";
import { type Written, rowWriter, tableRows } from "./write-rows.ts";

/** What became of one observation. */
export type Outcome =
  | { outcome: "applied" | "stale"; id: string }
  /** Dated later than it can be: kept apart, and the mirror is as it was. */
  | { outcome: "unbelieved"; id: string; changedAt: string }
  | { outcome: "thin"; id: string }
  | { outcome: "unreadable"; reason: string };

/** An object whose last state events alone cannot tell. */
export interface TiedObject extends ObjectKey {
  updatedAt: string;
}

export interface Applied {
  /** One for each observation, in their order. */
  outcomes: Outcome[];
  /** To be read once the service's `Date` is past `settledFrom(updatedAt)`. */
  ties: TiedObject[];
  /** Objects that something embedded told of without showing their state: to be read. */
  unread: ObjectKey[];
  /** States that are new to the history or to a row. */
  written: GroupState[];
  /** States that are dated later than they can be. */
  unbelieved: GroupState[];
}

const tables = mirrorResources.map((resource) => ({ resource, write: rowWriter(resource) }));

/**
 * The one writer of the mirror. Brings the rows up to the newest of their known states and these, and keeps every
 * state in the history: one statement a table, whatever the number of observations. Commutative and idempotent.
 * Needs a transaction; may fail with 40P01 or 40001, then the whole may be repeated.
 */
export async function applyObservations(
  trx: Knex.Transaction,
  observations: readonly Observation[],
  limits: WriterLimits = defaultWriterLimits,
): Promise<Applied> {
  const decoded = observations.map(decode);
  const states = decoded.flatMap((d) => ("states" in d ? d.states : []));
  const written = await applyStates(trx, states, limits);
  const outcomes = decoded.map((d): Outcome => {
    if (!d.ok) {
      return d.thin ? { outcome: "thin", id: d.id } : { outcome: "unreadable", reason: d.reason };
    }
    const [core] = d.states;
    if (core?.isBelieved === false) {
      return { outcome: "unbelieved", id: d.id, changedAt: core.changedAt };
    }
    const isApplied = d.states.some((state) => written.changed.has(state));
    return { outcome: isApplied ? "applied" : "stale", id: d.id };
  });
  return {
    outcomes,
    ties: await tiedObjects(trx, states, written),
    unread: decoded.flatMap((d) => (d.ok ? d.unread : [])),
    written: newStates(written),
    unbelieved: states.filter(({ isBelieved }) => !isBelieved),
  };
}

/** States that writing brought into the history or into a row. */
export const newStates = ({ recorded, changed }: Written): GroupState[] => [
  ...new Set([...recorded, ...changed]),
];

/**
 * Applies states that were decoded, or made (an absence), already; what is dated later than it can be is kept apart, and
 * what a person overruled (`overwriteObject`) is left out. Needs a transaction.
 */
export async function applyStates(
  trx: Knex.Transaction,
  states: readonly GroupState[],
  limits: WriterLimits = defaultWriterLimits,
): Promise<Written> {
  const all: Written = { recorded: new Set(), changed: new Set(), fresh: new Set() };
  if (states.length === 0) return all;
  await limitWriter(trx, limits);
  await redactErased(trx, states);
  const believed = states.filter(({ isBelieved }) => isBelieved);
  if (believed.length < states.length) await keepUnbelieved(trx, states);
  const overruled = await findOverruled(trx, believed);
  for (const { resource, write } of tables) {
    const own = believed.filter(
      (state) => Object.hasOwn(resource.groups, state.group) && !overruled.has(state),
    );
    if (own.length === 0) continue;
    const { recorded, changed, fresh } = await write(trx, tableRows(resource, own));
    for (const state of recorded) all.recorded.add(state);
    for (const state of changed) all.changed.add(state);
    for (const state of fresh) all.fresh.add(state);
  }
  return all;
}

/** Objects of which two states say the same time and not the same, unless a read came late enough to tell. */
async function tiedObjects(
  trx: Knex.Transaction,
  states: readonly GroupState[],
  { recorded, fresh }: Written,
): Promise<TiedObject[]> {
  const unsure = states.filter((state) => recorded.has(state) && isUnsettled(state));
  // What had no row has no other states than those of this batch.
  const known = unsure.filter((state) => !fresh.has(state));
  const tied = [...tiesAmong(states, recorded), ...(await findTies(trx, known))];
  const objects = new Map<string, TiedObject>();
  for (const { settledBy, version } of tied) {
    if (settledBy === null) continue;
    const updatedAt = timeOfVersion(version);
    const key = `${settledBy.resource}|${settledBy.id}`;
    const other = objects.get(key);
    if (other === undefined || other.updatedAt < updatedAt)
      objects.set(key, { ...settledBy, updatedAt });
  }
  return [...objects.values()];
}

const isUnsettled = ({ settledBy, observedAt, version }: GroupState): boolean =>
  settledBy !== null && !isSettledBy(observedAt, timeOfVersion(version));

function tiesAmong(states: readonly GroupState[], recorded: ReadonlySet<GroupState>): GroupState[] {
  const times = new Map<string, GroupState[]>();
  for (const state of states) {
    if (!recorded.has(state)) continue;
    const key = `${state.group}|${state.id}|${state.updatedAt}`;
    const same = times.get(key);
    if (same === undefined) times.set(key, [state]);
    else same.push(state);
  }
  return [...times.values()].flatMap((same) =>
    same.length > 1 && same.every(isUnsettled) ? same : [],
  );
}

/**
 * Those of the states that share `updated_at` with a recorded state of other content: which of them is the last
 * cannot be told from events. One statement, after the rows of the objects were written: whoever works on the
 * same object meanwhile has waited, or was waited for.
 */
async function findTies(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<GroupState[]> {
  if (states.length === 0) return [];
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       where exists (
         select from mirror.versions v
         where v.resource = given.resource and v.id = given.id
           and v.source_updated_at = given.source_updated_at and v.content_hash <> given.content_hash)`,
      [
        sqlArray(states.map(({ group }) => group)),
        sqlArray(states.map(({ id }) => id)),
        sqlArray(states.map(({ updatedAt }) => updatedAt)),
        sqlArray(states.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-ties" });
  return rows.flatMap(({ n }) => states[Number(n) - 1] ?? []);
}

/** Those of the states that the history has. One statement. */
export async function findRecorded(
  db: Knex,
  states: readonly GroupState[],
): Promise<Set<GroupState>> {
  if (states.length === 0) return new Set();
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
       with ordinality as given(resource, id, source_updated_at, content_hash, n)
     join mirror.versions v using (resource, id, source_updated_at, content_hash)`,
    [
      sqlArray(states.map(({ group }) => group)),
      sqlArray(states.map(({ id }) => id)),
      sqlArray(states.map(({ updatedAt }) => updatedAt)),
      sqlArray(states.map(({ hash }) => hash)),
    ],
  );
  return new Set(rows.flatMap(({ n }) => states[Number(n) - 1] ?? []));
}

/**
 * Keeps those of the states that are dated later than they can be, apart from the history: nothing that reads it, and
 * no version, has to know of them. One statement; idempotent. Needs a transaction.
 */
export async function keepUnbelieved(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<void> {
  const kept = states.filter(({ isBelieved }) => !isBelieved);
  if (kept.length === 0) return;
  await redactErased(trx, kept);
  await trx.raw(
    `insert into mirror.unbelieved (resource, id, source_updated_at, content_hash, observed_at, cause, data)
     select * from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[], ?::timestamptz[], ?::text[], ?::jsonb[])
     on conflict do nothing`,
    [
      sqlArray(kept.map(({ group }) => group)),
      sqlArray(kept.map(({ id }) => id)),
      sqlArray(kept.map(({ updatedAt }) => updatedAt)),
      sqlArray(kept.map(({ hash }) => hash)),
      sqlArray(kept.map(({ observedAt }) => observedAt)),
      sqlArray(kept.map(({ cause }) => cause)),
      sqlArray(kept.map(({ json }) => json)),
    ],
  );
}

/**
 * Those of the states that an event brings again although a person had the object written otherwise: they stay
 * overruled. What a read shows is what the service shows now, and is believed. One statement.
 */
async function findOverruled(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<ReadonlySet<GroupState>> {
  const told = states.filter(({ observedAt }) => observedAt === null);
  if (told.length === 0) return new Set();
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       join mirror.unbelieved u using (resource, id, source_updated_at, content_hash) where u.heal is not null`,
      [
        sqlArray(told.map(({ group }) => group)),
        sqlArray(told.map(({ id }) => id)),
        sqlArray(told.map(({ updatedAt }) => updatedAt)),
        sqlArray(told.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-overruled" });
  return new Set(rows.flatMap(({ n }) => told[Number(n) - 1] ?? []));
}

export interface WriterLimits {
  statementMs: number;
  /** To wait for one lock. */
  lockMs: number;
  /** From the first write on. */
  transactionMs: number;
}

/**
 * A statement is cut off well before its transaction, so that a slow one is known by its own error (57014) and the
 * connection stays.
 */
export const defaultWriterLimits: WriterLimits = {
  statementMs: 20_000,
  lockMs: 10_000,
  transactionMs: 30_000,
};

/**
 * Cuts a writer of the mirror off after 30 s. As-of reports rely on it: what was recorded more than a minute ago
 * is committed, or never will be. (`transaction_timeout` came with PostgreSQL 17; before, every statement and
 * every pause between two are cut off apart.) Idempotent within a transaction.
 */
export async function limitWriter(
  trx: Knex.Transaction,
  { statementMs, lockMs, transactionMs }: WriterLimits,
): Promise<void> {
  await trx
    .raw(
      `select set_config('statement_timeout', ?::text, true), set_config('lock_timeout', ?::text, true),
         set_config('idle_in_transaction_session_timeout', ?::text, true),
         case when current_setting('server_version_num')::int >= 170000
              then set_config('transaction_timeout', ?::text, true) end`,
      [statementMs, lockMs, transactionMs, transactionMs],
    )
    .options({ name: "mirror-limits" });
}
