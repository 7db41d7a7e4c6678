import type { Column, GroupState } from "./observation.ts";
import { rowText } from "./row-text.ts";
import { asked, columnsOf, sharedColumns } from "./stored-rows.ts";
import type { StoredRow } from "./stored-rows.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable } from "./table.ts";

/** Whether a stored row is exactly as these states of its groups show it. */
export type IsStored = (states: ReadonlyMap<string, GroupState>, stored: StoredRow) => boolean;

/**
 * Makes the test of equality of a table's rows: every column and the whole content of every group that is given. Says
 * yes only where `compareStatement` finds no difference, which knows what a difference is; what is not proved here
 * is compared there. Pure.
 */
export function isStoredTest(table: MirrorTable, places: ReadonlyMap<string, number>): IsStored {
  const placeOf = (name: string): number => {
    const place = places.get(name);
    if (place === undefined) throw new Error(`${table.name}: ${name} is not read`);
    return place;
  };
  const groups = namedGroups(table).map((group) => ({
    group: group.group,
    isCore: group.group === table.core,
    columns: Object.entries(group.columns),
    columnsPlace: placeOf(columnsOf(group)),
    contentPlace: group.contentColumn === undefined ? null : placeOf(group.contentColumn),
  }));
  const holds = placeOf(asked.holds);
  const shownHold = table.shown === undefined ? null : placeOf(asked.shownHold);
  const areSharedStored = sharedTest(table, placeOf);

  return (states, stored) => {
    if (stored[holds] !== "t") return false;
    for (const { group, isCore, columns, columnsPlace, contentPlace } of groups) {
      const state = states.get(group);
      if (state === undefined) continue;
      if (contentPlace !== null && stored[contentPlace] !== state.json) return false;
      const shown = [state.changedAt, ...valuesOf(columns, state)];
      if (isCore) shown.push(inPostgresForm(state.updatedAt));
      // What was never seen here has no time there: what is to be done about that is not for a test of equality.
      if (stored[columnsPlace] !== rowText(shown)) return false;
      if (isCore && shownHold !== null && stored[shownHold] !== "t") return false;
    }
    return areSharedStored(states, stored);
  };
}

/** The columns that the core owns once it was seen, and until then another group. */
function sharedTest({ shared, core }: MirrorTable, placeOf: (name: string) => number): IsStored {
  if (shared === undefined) return () => true;
  const columns = Object.entries(shared.columns);
  const [place, hasCore] = [placeOf(sharedColumns), placeOf(asked.hasCore)];
  return (states, stored) => {
    const other = stored[hasCore] === "t" ? undefined : states.get(shared.with);
    const owner = states.get(core) ?? other;
    return owner === undefined || stored[place] === rowText(valuesOf(columns, owner));
  };
}

const valuesOf = (
  columns: readonly (readonly [column: string, type: string])[],
  state: GroupState,
): (string | null)[] =>
  columns.map(([column, type]) => printed(type, state.columns[column] ?? null));

/** As Postgres prints it. */
function printed(type: string, value: Column): string | null {
  if (value === null) return null;
  if (typeof value === "boolean") return value ? "t" : "f";
  if (typeof value === "number") return String(value);
  return type === "timestamptz" ? inPostgresForm(value) : value;
}

const noFraction = ".000000Z";

/** From the fixed form of a time to that of a `timestamp`, which drops zeros at the end. */
function inPostgresForm(at: string): string {
  const [date, time] = [at.slice(0, 10), at.slice(11, 19)];
  return at.endsWith(noFraction)
    ? `${date} ${time}`
    : `${date} ${time}${at.slice(19, -1).replace(/0+$/, "")}`;
}
