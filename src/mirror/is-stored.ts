import type { Column, GroupState } from "./observation.ts";
import { asked, hashOf } from "./stored-texts.ts";
import type { StoredTexts } from "./stored-texts.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable } from "./table.ts";

/** Whether a stored row is exactly as these states of its groups show it. */
export type IsStored = (states: ReadonlyMap<string, GroupState>, stored: StoredTexts) => boolean;

interface PlacedColumn {
  column: string;
  type: string;
  place: number;
}

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
  const placed = (columns: Readonly<Record<string, string>> = {}): PlacedColumn[] =>
    Object.entries(columns).map(([column, type]) => ({ column, type, place: placeOf(column) }));
  const groups = namedGroups(table).map(({ group, versionColumn, contentColumn, columns }) => ({
    group,
    isCore: group === table.core,
    version: placeOf(versionColumn),
    hash: contentColumn === undefined ? null : placeOf(hashOf(contentColumn)),
    columns: placed(columns),
  }));
  const shared = placed(table.shared?.columns);
  const coreVersion = placeOf(table.groups[table.core]?.versionColumn ?? "");
  const changedAt = placeOf("source_updated_at");
  const [computedHold, shownHold, isErased] = [
    placeOf(asked.computedHold),
    placeOf(asked.shownHold),
    placeOf(asked.isErased),
  ];

  return (states, stored) => {
    if (stored[computedHold] !== "t" || stored[isErased] === "t") return false;
    for (const { group, isCore, version, hash, columns } of groups) {
      const state = states.get(group);
      if (state === undefined) continue;
      const storedVersion = stored[version] ?? "";
      // Never seen here: what is to be done about that is not for a test of equality.
      if (storedVersion === "") return false;
      if (hash !== null && stored[hash] !== state.hash) return false;
      if (!areSame(columns, state, stored)) return false;
      if (!isCore) continue;
      const isSameTime =
        storedVersion.startsWith(state.version.slice(0, 27)) &&
        isSame("timestamptz", stored[changedAt] ?? null, state.updatedAt);
      if (!isSameTime || stored[shownHold] !== "t") return false;
    }
    const isCoreHere = stored[coreVersion] !== "";
    const owner =
      states.get(table.core) ?? (isCoreHere ? undefined : states.get(table.shared?.with ?? ""));
    return owner === undefined || areSame(shared, owner, stored);
  };
}

const areSame = (
  columns: readonly PlacedColumn[],
  state: GroupState,
  stored: StoredTexts,
): boolean =>
  columns.every(({ column, type, place }) =>
    isSame(type, stored[place] ?? null, state.columns[column] ?? null),
  );

function isSame(type: string, stored: string | null, shown: Column): boolean {
  if (stored === null || shown === null) return stored === shown;
  if (typeof shown === "boolean") return stored === (shown ? "t" : "f");
  if (typeof shown === "number") return stored === String(shown);
  return type === "timestamptz" ? stored === inPostgresForm(shown) : stored === shown;
}

const noFraction = ".000000Z";

/** From the fixed form of a time to that of a `timestamp`, which drops zeros at the end. */
function inPostgresForm(at: string): string {
  const [date, time] = [at.slice(0, 10), at.slice(11, 19)];
  return at.endsWith(noFraction)
    ? `${date} ${time}`
    : `${date} ${time}${at.slice(19, -1).replace(/0+$/, "")}`;
}
