import type { Knex } from "knex";
import type { GroupState } from "./observation.ts";
import { rowBindings } from "./row-bindings.ts";
import { tableStatement } from "./table-statement.ts";
import { stateKey } from "./table-rows.ts";
import type { TableRow } from "./table-rows.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable, NamedGroup } from "./table.ts";

/** What writing did. */
export interface Written {
  /** States that the history did not have. */
  recorded: Set<GroupState>;
  /** States by which their rows changed. */
  changed: Set<GroupState>;
  /** States of objects that had no row. */
  fresh: Set<GroupState>;
}

export type RowWriter = (trx: Knex.Transaction, rows: readonly TableRow[]) => Promise<Written>;

/** A writer for one table: history and rows in one statement, which the server plans once a connection. */
export function rowWriter(table: MirrorTable): RowWriter {
  const statement = tableStatement(table);
  const groups = namedGroups(table);
  const name = `mirror-${table.name}`;
  return async (trx, rows) => {
    const bindings = rowBindings(table, groups, statement.given, rows);
    const { rows: answer } = await trx
      .raw<{ rows: AnswerRow[] }>(statement.sql, bindings)
      .options({ name });
    return readAnswer(groups, rows, answer);
  };
}

interface AnswerRow {
  what: "row" | "count" | "state";
  id: string;
  fresh: boolean | null;
  [version: string]: unknown;
}

function readAnswer(
  groups: readonly NamedGroup[],
  rows: readonly TableRow[],
  answer: readonly AnswerRow[],
): Written {
  const recorded = recordedStates(groups, rows, answer);
  const written = new Map(answer.flatMap((row) => (row.what === "row" ? [[row.id, row]] : [])));
  const changed = new Set<GroupState>();
  const fresh = new Set<GroupState>();
  for (const { id, isWinner, states } of rows) {
    const row = written.get(id);
    if (row === undefined) continue;
    if (row.fresh === true) for (const state of states.values()) fresh.add(state);
    if (isWinner) for (const state of changesOf(groups, states, row, recorded)) changed.add(state);
  }
  return { recorded, changed, fresh };
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
 * By which of its states a written row changed. One that was known already did not change it, though its version
 * stands there; a group without history did when nothing else explains the change.
 */
function changesOf(
  groups: readonly NamedGroup[],
  states: ReadonlyMap<string, GroupState>,
  row: AnswerRow,
  recorded: ReadonlySet<GroupState>,
): GroupState[] {
  const stored = groups.flatMap(({ group, versionColumn, inHistory }) => {
    const state = states.get(group);
    return state !== undefined && row[versionColumn] === state.version
      ? [{ state, inHistory }]
      : [];
  });
  const known = stored.filter(({ state }) => recorded.has(state) || state.observedAt !== null);
  const changes = known.length > 0 ? known : stored.filter(({ inHistory }) => !inHistory);
  return changes.map(({ state }) => state);
}
