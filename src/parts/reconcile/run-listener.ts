import type { Knex } from "knex";
import type { Listener } from "../../core/mirror/listener.ts";
import type { ObjectKey } from "../../core/mirror/snapshot.ts";
import type { Log } from "../../platform/log.ts";
import type { RunEndListener } from "./runs/finish-run.ts";

/** Who is told of reconciliation: of what it writes, and of what follows a run or a heal. */
export interface RunListener extends Listener, RunEndListener {
  /** A person had an object written as the service shows it. After the write, which it cannot undo; throws nothing. */
  healedByHand(deps: { db: Knex; log: Log }, object: ObjectKey, at: Date): Promise<void>;
}

/** For a deployment without alerts. */
export const nobodyListens: RunListener = {
  tellWithin: (_, transaction) => transaction(() => Promise.resolve([])),
  runEnded: () => Promise.resolve(),
  healedByHand: () => Promise.resolve(),
};
