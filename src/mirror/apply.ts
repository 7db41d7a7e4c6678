import type { Knex } from "knex";
import { redactErased } from "./erasure/redact-states.ts";
import { findTies } from "./history.ts";
import type { GroupState, ObjectKey, Observation } from "./observation.ts";
import { tableRows } from "./table-rows.ts";
import { findOverruled, keepUnbelieved } from "./unbelieved.ts";
import { decode, mirrorTables } from "./tables.ts";
import { isSettledBy, timeOfVersion } from "./version.ts";
import { rowWriter } from "./write-rows.ts";
import type { Written } from "./write-rows.ts";
import { defaultWriterLimits, limitWriter } from "./writer-limits.ts";
import type { WriterLimits } from "./writer-limits.ts";

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

const tables = mirrorTables.map((table) => ({ table, write: rowWriter(table) }));

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
  for (const { table, write } of tables) {
    const own = believed.filter(
      (state) => Object.hasOwn(table.groups, state.group) && !overruled.has(state),
    );
    if (own.length === 0) continue;
    const { recorded, changed, fresh } = await write(trx, tableRows(table, own));
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
