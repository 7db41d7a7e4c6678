import type { Knex } from "knex";
import type { Listener } from "../../core/mirror/listener.ts";
import type { ObjectKey } from "../../core/mirror/snapshot.ts";
import type { Log } from "../../platform/log.ts";
import type { RunEndListener } from "./runs/finish-run.ts";

/** Receives the writes of reconciliation, and the end of a run or a heal. */
export interface RunListener extends Listener, RunEndListener {
  /** Called when a person healed an object, after the write, which it cannot undo; throws nothing. */
  healedByHand(deps: { db: Knex; log: Log }, object: ObjectKey, at: Date): Promise<void>;
}

/** For a deployment without alerts. */
export const nobodyListens: RunListener = {
  tellWithin: (_, transaction) => transaction(() => Promise.resolve([])),
  runEnded: () => Promise.resolve(),
  healedByHand: () => Promise.resolve(),
};
