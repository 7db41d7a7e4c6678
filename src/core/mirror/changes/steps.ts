import type { GroupState, Resource } from "../snapshot.ts";
import type { WrittenRow } from "../write/write-rows.ts";
import { type Watched, factsOf, kindsOf } from "./kinds.ts";

/** A part of a write to a row. */
export interface Step extends Omit<WrittenRow, "id" | "passed"> {
  /** Date of its last state; the last step ends later than all times. */
  until: string;
}

const always = "~";

/**
 * The steps of a write to a row: a row that is written once may have passed through states that came with the last one.
 * A state is a step of its own where it has a kind or a fact; the others belong to the step after them. The last step
 * is the row's present state.
 */
export function stepsOf(resource: Resource, row: WrittenRow): readonly Step[] {
  if (row.passed.length === 0) return [{ ...row, until: always }];
  const steps: Step[] = [];
  let { before } = row;
  let after: Watched = before ?? {};
  let state: Step["state"] = null;
  const shown: GroupState[] = [];
  const moments = momentsOf([...row.passed, ...row.shown]);
  for (const states of moments.slice(0, -1)) {
    const cause = states[0]?.cause ?? row.cause;
    for (const each of states) {
      after = shownAfter(after, resource, each);
      if (each.group === resource) state = each;
      shown.push(each);
    }
    const kinds = kindsOf(resource, { before, after });
    // The last step reports that the object is new, too.
    const isNothing = kinds.every((kind) => kind === `${resource}.created`);
    if (isNothing && !states.some((each) => isTold(resource, each))) continue;
    const until = states[0]?.changedAt ?? always;
    const { createdAt } = row;
    const told = shown.splice(0);
    steps.push({ before, after, cause, isChanged: true, state, createdAt, shown: told, until });
    before = after;
  }
  const rest = [...shown, ...(moments.at(-1) ?? []), ...row.shown];
  return [...steps, { ...row, before, shown: rest, until: always }];
}

const isTold = (resource: Resource, state: GroupState): boolean =>
  factsOf(state).some((fact) => fact.resource === resource);

/** The states in their order, those together that one snapshot shows: of one time, and of different groups. */
function momentsOf(states: readonly GroupState[]): GroupState[][] {
  const moments: GroupState[][] = [];
  const sorted = [...states].sort((a, b) => compare(a.changedAt, b.changedAt) || compare(a.version, b.version));
  for (const state of sorted) {
    const moment = moments.at(-1);
    const isSame = moment?.every((other) => other.changedAt === state.changedAt && other.group !== state.group);
    if (moment !== undefined && isSame === true) moment.push(state);
    else moments.push([state]);
  }
  return moments;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The watched columns after a state, as far as the state alone determines them. */
function shownAfter(before: Watched, resource: Resource, { group, columns, hash }: GroupState): Watched {
  const after: Record<string, string | null> = { ...before };
  for (const [column, value] of Object.entries(columns)) {
    after[column] = value === null ? null : String(value);
  }
  if (group === resource) after["content_hash"] = hash;
  return after;
}
