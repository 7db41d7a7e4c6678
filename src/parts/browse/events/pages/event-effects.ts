import type { Knex } from "knex";
import type { EnvelopePaths } from "../../../../core/contract/event-envelope.ts";
import type { StoredEvent } from "../../../../core/inbox/queries.ts";
import { type FieldChange, changesBetween } from "../../../../core/mirror/compare/field-changes.ts";
import {
  type HistoryState,
  type StateKey,
  readNeighbours,
  statesOfCause,
} from "../../../../core/mirror/compare/state-neighbours.ts";
import { groupNamed } from "../../../../core/mirror/resources.ts";
import { statesOfEvent } from "../../../../core/worker/interpret-event.ts";

/** The outcome of one state that an event shows. */
export interface StateEffect {
  resource: string;
  id: string;
  group: string;
  /** The state's time at the service. */
  updatedAt: Date;
  /**
   * `changed`: it was the newest. `late`: `against` stood already. `known`: `against` had shown the same. `absent`: the
   * history does not have it.
   */
  verdict: "changed" | "late" | "known" | "absent";
  against: HistoryState | null;
  /** The state that replaced it, if any. */
  replacedBy: HistoryState | null;
  /** Compared with the state before it. */
  changes: readonly FieldChange[];
  isFirst: boolean;
}

/** The most states on a page: an order embeds a transaction for each of its charges. */
const mostStates = 40;

/**
 * The effects of an event, state by state, with the newer states where it was stale. Reads its bytes; where they were
 * pruned, the states that the history first saw in it. Two statements.
 */
export async function readEffects(
  db: Knex,
  places: Readonly<EnvelopePaths>,
  event: StoredEvent,
  knownAt: Date,
): Promise<StateEffect[]> {
  const states = (await statesShown(db, places, event)).slice(0, mostStates);
  const neighbours = await readNeighbours(db, states, knownAt);
  const cause = `event:${event.seq}`;
  return states.flatMap((state, n): StateEffect[] => {
    const found = neighbours[n];
    const resource = groupNamed(state.group)?.resource.name;
    if (found === undefined || resource === undefined) return [];
    const { itself, before, knownLater, newest } = found;
    const verdict =
      itself === null ? "absent" : itself.cause !== cause ? "known" : knownLater !== null ? "late" : "changed";
    return [
      {
        resource,
        id: state.id,
        group: state.group,
        updatedAt: new Date(state.updatedAt),
        verdict,
        against: verdict === "known" ? itself : verdict === "changed" ? null : knownLater,
        replacedBy: verdict === "changed" ? newest : null,
        changes: changesBetween(resource, before?.data ?? null, itself?.data ?? state.data),
        isFirst: before === null,
      },
    ];
  });
}

type ShownState = StateKey & { data: Record<string, unknown> };

async function statesShown(
  db: Knex,
  places: Readonly<EnvelopePaths>,
  { seq, raw, resource_type: resource, resource_id: id }: StoredEvent,
): Promise<ShownState[]> {
  if (raw === null) {
    return resource === null || id === null ? [] : statesOfCause(db, `event:${seq}`, { resource, id });
  }
  return statesOfEvent(places, { seq, raw }).flatMap(({ group, id: own, updatedAt, hash, json }) =>
    groupNamed(group)?.definition.inHistory === true
      ? [{ group, id: own, updatedAt, hash, data: JSON.parse(json) as Record<string, unknown> }]
      : [],
  );
}
