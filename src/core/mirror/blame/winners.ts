import { resourceNamed } from "../resources.ts";
import { namedGroups, ownerOfShared, readColumns } from "../resources/resource.ts";
import { hashOfVersion, partsOfVersion } from "../version.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";
import { isSame } from "./fields.ts";
import type { KnownObject, KnownState } from "./object-history.ts";

/** The state that a group of fields shows. */
export interface Winner {
  state: KnownState;
  /** The row's version of it, which a later sighting may have raised; of the past, the state's own. */
  version: string;
}

/** Keyed by group; groups that were never seen and groups without history are absent. */
export type Winners = ReadonlyMap<string, Winner>;

/** The states that the mirror's row shows, found by its versions. */
export function winnersNow({ resource, row, states }: KnownObject): Winners {
  const winners = new Map<string, Winner>();
  for (const { group, versionColumn } of namedGroups(resourceNamed(resource))) {
    const version = row?.[versionColumn];
    if (typeof version !== "string" || version === "") continue;
    const state = stateOfVersion(states, group, version);
    if (state !== undefined) winners.set(group, { state, version });
  }
  return winners;
}

/**
 * Several states of one content differ in their own time, which the version of an order's entry need not start with.
 */
function stateOfVersion(states: readonly KnownState[], group: string, version: string): KnownState | undefined {
  const hash = hashOfVersion(version);
  const { updatedAt, within } = partsOfVersion(version);
  const same = states.filter((state) => state.group === group && state.hash === hash);
  return (
    same.find((state) => state.updatedAt === updatedAt) ??
    same.find((state) => state.updatedAt === within) ??
    (within === undefined ? undefined : same[0])
  );
}

/**
 * The highest states among those recorded by a time (fixed form). As in the reports' `as of`: a read that only repeated
 * a known state left no trace, so of two states of one time it may be the other one.
 */
export function winnersAsOf({ states }: Pick<KnownObject, "states">, at: string): Winners {
  const winners = new Map<string, Winner>();
  for (const state of states) {
    if (state.recordedAt > at) continue;
    const rival = winners.get(state.group);
    if (rival === undefined || state.version > rival.version) {
      winners.set(state.group, { state, version: state.version });
    }
  }
  return winners;
}

/** Columns of the row that differ from its states: only a manual edit of the row writes such a value. */
export function editedColumns({ resource, row }: KnownObject, winners: Winners): string[] {
  if (row === null) return [];
  const described = resourceNamed(resource);
  const edited = (columns: Readonly<Record<string, unknown>>, { isPartial }: { isPartial: boolean }) =>
    Object.entries(columns).flatMap(([column, value]) =>
      (isPartial && value === null) || isSame(comparable(row[column]), comparable(value)) ? [] : [column],
    );
  const found = Object.entries(described.groups).flatMap(([group, definition]) => {
    const state = winners.get(group)?.state;
    if (state === undefined) return [];
    const columns: Record<string, unknown> = readColumns(definition.columns, state.content, state.updatedAt);
    if (definition.contentColumn !== undefined) columns[definition.contentColumn] = state.content;
    return edited(columns, { isPartial: false });
  });
  const owner = ownerOfShared(described, winners)?.state;
  if (described.shared === undefined || owner === undefined) return found;
  const shared = readColumns(described.shared.columns, owner.content, owner.updatedAt);
  // An order names the card of its entries once, outside of them.
  return [...found, ...edited(shared, { isPartial: owner.group !== described.name })];
}

const comparable = (value: unknown): unknown =>
  typeof value === "string" ? (canonicalTimestamp(value) ?? value) : value;
