import type { Clock } from "../../platform/clock.ts";
import { modes } from "../mode.ts";
import type { State } from "../state.ts";
import { dumpSpace } from "./dump-space.ts";
import type { Json } from "./json-text.ts";

/** Of the shape below. Another one is refused, not guessed at. */
export const dumpFormat = 2;

/** Everything that a sandbox must know to go on as if it had not stopped. Rate windows are not part of it: they start anew. */
export function dumpState(state: State, wallClock: Clock): Json {
  const { chance, time } = state;
  return {
    format: dumpFormat,
    seed: state.seed,
    clock: { now_ms: time.nowMs(), mode: time.mode, wall_ms: wallClock.now().getTime() },
    settings: state.settings,
    faults: structuredClone(state.faults),
    chance: {
      deliveryIds: chance.deliveryIds.mark(),
      faults: chance.faults.words(),
      flaws: chance.flaws.words(),
      api: chance.api.words(),
    },
    keys: [...state.keys],
    merchants: Object.fromEntries(
      Array.from(state.merchants.values(), ({ id, name, spaces }) => [
        id,
        { name, spaces: Object.fromEntries(modes.map((mode) => [mode, dumpSpace(spaces[mode])])) },
      ]),
    ),
    jobs: time.planned().filter(({ kind }) => kind !== "delivery"),
    events: state.events.dump(),
    deliveries: state.dispatcher.dump(),
  };
}
