import type { Knex } from "knex";
import { type MirrorResource, type NamedGroup, namedGroups, ownerOfShared } from "../resources/resource.ts";
import type { Transition, Watched } from "../changes/kinds.ts";
import type { GroupState } from "../snapshot.ts";
import { hashOfVersion, timeOfVersion } from "../version.ts";
import {
  type GivenColumn,
  type StateField,
  afterPrefix,
  beforePrefix,
  formerPrefix,
  tableStatement,
  watchedColumns,
} from "./upsert-statement.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";

export interface WriteResult {
  /** States new to the history. */
  recorded: Set<GroupState>;
  /** States that changed their rows. */
  changed: Set<GroupState>;
  /** States of objects that had no row. */
  fresh: Set<GroupState>;
  rows: WrittenRow[];
}

/** A row that was written, with its watched columns. */
export interface WrittenRow extends Transition {
  id: string;
  cause: string;
  /**
   * The row is new, or its content has changed. The first sighting of a group is no change: a sale that was known from
   * its order is the same when it is read by itself.
   */
  isChanged: boolean;
  /** The state of its first group in the history; null where no state of the batch names it. */
  state: Pick<GroupState, "group" | "updatedAt" | "hash"> | null;
  /** `created_at` of the object, if the row is new and its states show it. Fixed form. */
  createdAt: string | null;
  /** The states that it shows now. */
  shown: readonly GroupState[];
  /** States of the batch that are new, later than the row's former state, and earlier than its present one. */
  passed: readonly GroupState[];
}

export type RowWriter = (trx: Knex.Transaction, rows: readonly TableRow[]) => Promise<WriteResult>;

/** A writer for one table: history and rows in one prepared statement, planned once per connection. */
export function rowWriter(resource: MirrorResource): RowWriter {
  const statement = tableStatement(resource);
  const groups = namedGroups(resource);
  const name = `mirror-${resource.table}`;
  return async (trx, rows) => {
    const bindings = rowBindings(resource, statement.given, rows);
    const { rows: answer } = await trx.raw<{ rows: AnswerRow[] }>(statement.sql, bindings).options({ name });
    return readAnswer(resource, groups, rows, answer);
  };
}

interface AnswerRow {
  what: "row" | "missed" | "count" | "state";
  id: string;
  fresh: boolean | null;
  /** Versions and watched columns. */
  [column: string]: string | boolean | null;
}

function readAnswer(
  resource: MirrorResource,
  groups: readonly NamedGroup[],
  rows: readonly TableRow[],
  answer: readonly AnswerRow[],
): WriteResult {
  const missed = answer.find(({ what }) => what === "missed");
  if (missed !== undefined) throw new MadeMeanwhile(resource.table, missed.id);
  const recorded = recordedStates(groups, rows, answer);
  const written = new Map(answer.flatMap((row) => (row.what === "row" ? [[row.id, row]] : [])));
  const changed = new Set<GroupState>();
  const fresh = new Set<GroupState>();
  const writtenRows: WrittenRow[] = [];
  const watched = watchedColumns(resource);
  const lost = lostStatesOf(rows, recorded);
  for (const { id, isWinner, states } of rows) {
    const row = written.get(id);
    if (row === undefined) continue;
    if (row.fresh === true) for (const state of states.values()) fresh.add(state);
    if (!isWinner) continue;
    const shown = changesOf(groups, states, row, recorded);
    for (const state of shown) changed.add(state);
    const before = row.fresh === true ? null : columnsOf(row, watched, beforePrefix);
    const after = columnsOf(row, watched, afterPrefix);
    const isNewOfSeen = (of: NamedGroup): boolean => {
      const state = states.get(of.group);
      return formerTime(row, of) !== "" && state !== undefined && recorded.has(state);
    };
    const isPassed = (state: GroupState): boolean => {
      const of = groups.find(({ group }) => group === state.group);
      return of !== undefined && state.changedAt > formerTime(row, of);
    };
    writtenRows.push({
      id,
      before,
      after,
      cause: causeOf(resource, states),
      isChanged: before === null || shows(groups, row, before, after) || groups.some(isNewOfSeen),
      state: stateOf(groups, states, row),
      createdAt: before === null ? createdAtOf(states) : null,
      shown,
      passed: lost.get(id)?.filter(isPassed) ?? [],
    });
  }
  return { recorded, changed, fresh, rows: writtenRows };
}

function createdAtOf(states: ReadonlyMap<string, GroupState>): string | null {
  for (const { columns } of states.values()) {
    const { created_at: createdAt } = columns;
    if (typeof createdAt === "string") return createdAt;
  }
  return null;
}

/** The date of the group's state that the row showed before; '' if it showed none. */
const formerTime = (row: AnswerRow, { versionColumn }: NamedGroup): string =>
  String(row[formerPrefix + versionColumn] ?? "");

/** The new states that others of the batch surpass, by object. */
function lostStatesOf(
  rows: readonly TableRow[],
  recorded: ReadonlySet<GroupState>,
): ReadonlyMap<string, readonly GroupState[]> {
  const lost = new Map<string, GroupState[]>();
  for (const { id, isWinner, states } of rows) {
    if (isWinner) continue;
    const own = [...states.values()].filter((state) => recorded.has(state));
    lost.set(id, [...(lost.get(id) ?? []), ...own]);
  }
  return lost;
}

/** Whether the row's content is new: another content that won again has been in the history before. */
function shows(
  [core]: readonly NamedGroup[],
  row: AnswerRow,
  { content_hash: hash, ...before }: Watched,
  after: Watched,
): boolean {
  const isCoreSeen = core !== undefined && formerTime(row, core) !== "";
  if (isCoreSeen && hash !== after["content_hash"]) return true;
  return Object.entries(before).some(([column, value]) => value !== after[column]);
}

/** Another transaction made the row while the statement ran, so its former state is unknown. Try again. */
class MadeMeanwhile extends Error {
  /** A serialization failure, as the server calls it (`isRetryableConflict`). */
  readonly code = "40001";

  constructor(table: string, id: string) {
    super(`mirror.${table} ${id} was made by another transaction meanwhile`);
  }
}

function columnsOf(row: AnswerRow, columns: readonly string[], prefix: string): Watched {
  const values: Record<string, string | null> = {};
  for (const column of columns) values[column] = row[prefix + column] as string | null;
  return values;
}

function stateOf(
  groups: readonly NamedGroup[],
  states: ReadonlyMap<string, GroupState>,
  row: AnswerRow,
): WrittenRow["state"] {
  const first = groups.find(({ inHistory, versionColumn }) => inHistory && row[versionColumn] !== "");
  if (first === undefined) return null;
  const version = String(row[first.versionColumn]);
  const state = states.get(first.group);
  if (state?.version === version) return state;
  // An entry of an order is ordered by the order's time, so its version does not show its own.
  if (first !== groups[0]) return null;
  return { group: first.group, updatedAt: timeOfVersion(version), hash: hashOfVersion(version) };
}

function recordedStates(
  groups: readonly NamedGroup[],
  rows: readonly TableRow[],
  answer: readonly AnswerRow[],
): Set<GroupState> {
  const inHistory = groups.flatMap((group) => (group.inHistory ? [group.group] : []));
  const given = rows.flatMap(({ states }) => inHistory.flatMap((group) => states.get(group) ?? []));
  const count = answer.find(({ what }) => what === "count");
  if (Number(count?.id) === given.length) return new Set(given);
  const keys = new Set(answer.flatMap(({ what, id }) => (what === "state" ? [id] : [])));
  return new Set(given.filter((state) => keys.has(stateKey(state))));
}

/**
 * The states that changed a written row: those whose version the row now has. An event's state that was already known
 * did not change it. A state of a group without history counts only if nothing else explains why the row was written.
 */
function changesOf(
  groups: readonly NamedGroup[],
  states: ReadonlyMap<string, GroupState>,
  row: AnswerRow,
  recorded: ReadonlySet<GroupState>,
): GroupState[] {
  const stored = groups.flatMap(({ group, versionColumn, inHistory }) => {
    const state = states.get(group);
    return state !== undefined && row[versionColumn] === state.version ? [{ state, inHistory }] : [];
  });
  const known = stored.filter(({ state }) => recorded.has(state) || state.observedAt !== null);
  const changes = known.length > 0 ? known : stored.filter(({ inHistory }) => !inHistory);
  return changes.map(({ state }) => state);
}

/** States of one object, at most one per group. */
export interface TableRow {
  id: string;
  /** The highest states of the object in the batch. Other rows go to the history alone. */
  isWinner: boolean;
  states: ReadonlyMap<string, GroupState>;
}

/** The identity of a state in the history. */
const stateKey = ({ group, id, updatedAt, hash }: GroupState): string => `${group}|${id}|${updatedAt}|${hash}`;

/**
 * The rows of a batch for one table: for each object one row with the highest states of its groups, and one for every
 * further distinct state that the history must record. Sorted, so that all batches lock in the same order.
 */
export function tableRows(resource: MirrorResource, states: readonly GroupState[]): TableRow[] {
  const winners = highestStates(states);
  const rows = winningRows(winners);
  rows.push(...lostStates(resource, states, winners));
  return rows.sort(byId);
}

/** One row for each object, with the highest states of its groups, in the order of the states. */
export const winnersAmong = (states: readonly GroupState[]): TableRow[] => winningRows(highestStates(states));

type StatesById = ReadonlyMap<string, ReadonlyMap<string, GroupState>>;

function highestStates(states: readonly GroupState[]): StatesById {
  const winners = new Map<string, Map<string, GroupState>>();
  for (const state of states) {
    const known = winners.get(state.id);
    const rival = known?.get(state.group);
    if (known === undefined) winners.set(state.id, new Map([[state.group, state]]));
    else if (rival === undefined || state.version > rival.version) known.set(state.group, state);
  }
  return winners;
}

const winningRows = (winners: StatesById): TableRow[] =>
  Array.from(winners, ([id, states]) => ({ id, isWinner: true, states }));

function lostStates(resource: MirrorResource, states: readonly GroupState[], winners: StatesById): TableRow[] {
  const lost = new Map<string, GroupState>();
  for (const state of states) {
    const winner = winners.get(state.id)?.get(state.group);
    if (winner === state || winner === undefined || !resource.groups[state.group]?.inHistory) continue;
    const key = stateKey(state);
    if (key !== stateKey(winner)) lost.set(key, state);
  }
  return [...lost.values()]
    .sort((a, b) => (a.version < b.version ? -1 : 1))
    .map((state) => ({ id: state.id, isWinner: false, states: new Map([[state.group, state]]) }));
}

/** The order in which rows are sent. */
export const byId = (a: TableRow, b: TableRow): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

type Value = string | number | boolean | null;

/** The bindings of `givenRows`: a blob of JSON texts, and one array per column. */
export function rowBindings(
  resource: MirrorResource,
  given: readonly GivenColumn[],
  rows: readonly TableRow[],
): (string | Buffer)[] {
  const groups = namedGroups(resource);
  const sent = new Set(given.map(({ name }) => name));
  const causes = rows.map(({ states }) => causeOf(resource, states));
  const blob = packJson(groups.flatMap(({ group }) => rows.map(({ states }) => states.get(group)?.json ?? null)));
  const columns = new Map<string, Value[]>([
    ["id", rows.map(({ id }) => id)],
    ["winner", rows.map(({ isWinner }) => (isWinner ? null : false))],
    ["last_cause", causes],
  ]);
  groups.forEach(({ group, prefix, versionColumn, columns: own }, g) => {
    const states = rows.map((row) => row.states.get(group));
    if (states.every((state) => state === undefined)) return;
    const set = (name: string, valueOf: (state: GroupState, row: number) => Value): void => {
      if (!sent.has(name)) return;
      columns.set(
        name,
        states.map((state, row) => (state === undefined ? null : valueOf(state, row))),
      );
    };
    const fields: Record<StateField, (state: GroupState, row: number) => Value> = {
      position: (_, row) => blob.positions[g * rows.length + row] ?? null,
      length: (_, row) => blob.lengths[g * rows.length + row] ?? null,
      at: ({ updatedAt, changedAt }) => (updatedAt === changedAt ? null : updatedAt),
      observed: ({ observedAt }) => observedAt,
      cause: ({ cause }, row) => (cause === causes[row] ? null : cause),
      replaced: ({ isReplaced }) => (isReplaced ? true : null),
      absent: ({ absentFields }) => (absentFields.length === 0 ? null : sqlArray(absentFields)),
    };
    set(versionColumn, ({ version }) => version);
    for (const [field, valueOf] of Object.entries(fields)) set(prefix + field, valueOf);
    for (const column of Object.keys(own)) set(column, (state) => state.columns[column] ?? null);
  });
  const owners = rows.map(({ states }) => ownerOfShared(resource, states));
  for (const column of Object.keys(resource.shared?.columns ?? {})) {
    columns.set(
      column,
      owners.map((owner) => owner?.columns[column] ?? null),
    );
  }
  return [blob.bytes, ...given.map(({ name }) => columnArray(columns.get(name) ?? []))];
}

const columnArray = (values: readonly Value[]): string =>
  values.every((value) => value === null) ? "{}" : sqlArray(values);

const causeOf = ({ name: core }: MirrorResource, states: ReadonlyMap<string, GroupState>): string =>
  (states.get(core) ?? [...states.values()][0])?.cause ?? "";

/** Concatenated texts in one buffer, with the position of each. */
export interface JsonBlob {
  bytes: Buffer;
  /** In bytes, from 1; null for an absent text. */
  positions: (number | null)[];
  lengths: (number | null)[];
}

/**
 * Packs JSON texts into one binary parameter, from which the server cuts them. In a text array every quotation mark
 * would be escaped here and unescaped there.
 */
function packJson(texts: readonly (string | null)[]): JsonBlob {
  const all = texts.join("");
  const bytes = Buffer.from(all, "utf8");
  const isAscii = bytes.length === all.length;
  const positions: (number | null)[] = [];
  const lengths: (number | null)[] = [];
  let next = 1;
  for (const text of texts) {
    const length = text === null ? 0 : isAscii ? text.length : Buffer.byteLength(text);
    positions.push(text === null ? null : next);
    lengths.push(text === null ? null : length);
    next += length;
  }
  return { bytes, positions, lengths };
}
