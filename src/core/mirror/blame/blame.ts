import { resourceNamed } from "../resources.ts";
import type { ComputedColumn } from "./computed-columns.ts";
import { type FieldPath, fieldsOf, isSame } from "./fields.ts";
import { type Loss, lossOfRefused, lossesOf } from "./losses.ts";
import type { KnownObject, KnownState } from "./object-history.ts";
import type { Winner, Winners } from "./winners.ts";

/** The origin of a field's value. */
export interface FieldBlame {
  field: FieldPath;
  value: unknown;
  group: string;
  winner: Winner;
  /** The first state of those that have the value without a break, up to the winner. */
  since: KnownState;
  /** States with another value of the field that lost. */
  rivals: readonly Rival[];
}

export interface Rival {
  state: KnownState;
  value: unknown;
  loss: Loss;
}

/**
 * For each field of an object: the state that its value comes from, and the states that lost. A field of several groups
 * belongs to the first group that was seen, as for columns that groups share; columns that the groups determine
 * together follow `computed`.
 */
export function blameOf(
  { resource, states, refused }: Pick<KnownObject, "resource" | "states" | "refused">,
  winners: Winners,
  computed: ReadonlyMap<string, ComputedColumn>,
): FieldBlame[] {
  const described = resourceNamed(resource);
  const chains = new Map(Object.keys(described.groups).map((group) => [group, chainOf(group, states, winners)]));
  const found = new Map<FieldPath, FieldBlame>();
  const put = (field: FieldPath, group: string, given?: unknown): void => {
    const chain = chains.get(group);
    if (chain === undefined || chain.winner === undefined) return;
    const value = given ?? chain.fields.get(chain.winner.state)?.get(field);
    found.set(field, {
      field,
      value,
      group,
      winner: chain.winner,
      since: sinceWhen(chain, field, value),
      rivals: [
        ...rivalsWithin(chain, field, value),
        ...rivalsOfOtherGroups(chains, { field, group, value }),
        ...refused.flatMap((state) => {
          const other = fieldsOf(state.content).get(field);
          return state.group !== group || isSame(other, value)
            ? []
            : [{ state, value: other, loss: lossOfRefused(state) }];
        }),
      ],
    });
  };
  for (const [group, { winner, fields }] of chains) {
    if (winner === undefined || group === described.absence?.group) continue;
    for (const field of fields.get(winner.state)?.keys() ?? []) {
      if (!found.has(field)) put(field, group);
    }
  }
  for (const [column, { value, group }] of computed) {
    if (group !== null) put(column, group, value);
  }
  return [...found.values()];
}

/** The states of a group by their versions, the winner first. */
interface Chain {
  winner: Winner | undefined;
  states: readonly KnownState[];
  fields: ReadonlyMap<KnownState, ReadonlyMap<FieldPath, unknown>>;
  losses: ReadonlyMap<KnownState, Loss>;
}

function chainOf(group: string, states: readonly KnownState[], winners: Winners): Chain {
  const winner = winners.get(group);
  const own = inOrder(states.filter((state) => state.group === group));
  return {
    winner,
    states: own,
    fields: new Map(own.map((state) => [state, fieldsOf(state.content)])),
    losses: lossesOf(own, winner),
  };
}

/** The highest version first. */
export const inOrder = (states: readonly KnownState[]): KnownState[] =>
  states.toSorted((a, b) => (a.version < b.version ? 1 : a.version > b.version ? -1 : 0));

function sinceWhen({ winner, states, fields }: Chain, field: FieldPath, value: unknown) {
  let since = winner?.state;
  const first = states.findIndex((state) => state === winner?.state);
  for (const state of states.slice(first + 1)) {
    if (!isSame(fields.get(state)?.get(field), value)) break;
    since = state;
  }
  if (since === undefined) throw new TypeError("a field without a winner has no beginning");
  return since;
}

function rivalsWithin({ fields, losses }: Chain, field: FieldPath, value: unknown): Rival[] {
  return Array.from(losses).flatMap(([state, loss]) => {
    const other = fields.get(state)?.get(field);
    return isSame(other, value) ? [] : [{ state, value: other, loss }];
  });
}

/** Only a state that shows the field can contradict it. */
function rivalsOfOtherGroups(
  chains: ReadonlyMap<string, Chain>,
  { field, group, value }: { field: FieldPath; group: string; value: unknown },
): Rival[] {
  const to = chains.get(group)?.winner?.state ?? null;
  return Array.from(chains).flatMap(([other, { winner, fields }]) => {
    if (other === group || winner === undefined) return [];
    const shown = fields.get(winner.state);
    if (shown?.has(field) !== true || isSame(shown.get(field), value)) return [];
    const loss: Loss = { why: "group", to, isLate: false };
    return [{ state: winner.state, value: shown.get(field), loss }];
  });
}
