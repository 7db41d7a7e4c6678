import type { GroupState } from "./observation.ts";
import type { MirrorTable } from "./table.ts";

/** States of one object side by side, at most one a group. */
export interface TableRow {
  id: string;
  /** The highest states of the object in the batch; other rows are for the history alone. */
  isWinner: boolean;
  states: ReadonlyMap<string, GroupState>;
}

/** What makes a state distinct. */
export const stateKey = ({ group, id, updatedAt, hash }: GroupState): string =>
  `${group}|${id}|${updatedAt}|${hash}`;

/**
 * The rows that a batch brings to a table: for each object one with the highest states of its groups, and a row
 * for every further distinct state that the history must have. Sorted, so that batches lock in one order.
 */
export function tableRows(table: MirrorTable, states: readonly GroupState[]): TableRow[] {
  const winners = new Map<string, Map<string, GroupState>>();
  for (const state of states) {
    const known = winners.get(state.id);
    const rival = known?.get(state.group);
    if (known === undefined) winners.set(state.id, new Map([[state.group, state]]));
    else if (rival === undefined || state.version > rival.version) known.set(state.group, state);
  }
  const rows: TableRow[] = [...winners].map(([id, of]) => ({ id, isWinner: true, states: of }));
  rows.push(...lostStates(table, states, winners));
  return rows.sort(byId);
}

function lostStates(
  table: MirrorTable,
  states: readonly GroupState[],
  winners: ReadonlyMap<string, ReadonlyMap<string, GroupState>>,
): TableRow[] {
  const lost = new Map<string, GroupState>();
  for (const state of states) {
    const winner = winners.get(state.id)?.get(state.group);
    if (winner === state || winner === undefined || !table.groups[state.group]?.inHistory) continue;
    const key = stateKey(state);
    if (key !== stateKey(winner)) lost.set(key, state);
  }
  return [...lost.values()]
    .sort((a, b) => (a.version < b.version ? -1 : 1))
    .map((state) => ({ id: state.id, isWinner: false, states: new Map([[state.group, state]]) }));
}

const byId = (a: TableRow, b: TableRow): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
