import { type WireObject, isObject } from "../../contract/wire-types.ts";
import { withoutPersonalData, withoutPersonalField } from "../privacy/personal-data.ts";
import { resourceNamed } from "../resources.ts";
import type { KnownObject, KnownState } from "./object-history.ts";

/** An object as shown to a person without the right to personal data: as after an erasure. */
export function withoutPersons(object: KnownObject): KnownObject {
  const versionColumns = new Set(
    Object.values(resourceNamed(object.resource).groups).map(({ versionColumn }) => versionColumn),
  );
  const row =
    object.row &&
    Object.fromEntries(
      Object.entries(object.row).flatMap(([column, value]) => {
        if (versionColumns.has(column)) return [[column, value]];
        const kept = withoutPersonalField(column, value);
        return kept === undefined ? [] : [[column, kept]];
      }),
    );
  return {
    ...object,
    row,
    states: object.states.map(impersonal),
    refused: object.refused.map((state) => ({ ...impersonal(state), heal: state.heal })),
  };
}

function impersonal(state: KnownState): KnownState {
  const content = withoutPersonalData(state.content);
  return { ...state, content: isObject(content) ? content : ({} satisfies WireObject) };
}
