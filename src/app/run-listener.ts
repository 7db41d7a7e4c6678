import type { Knex } from "knex";
import type { Listener } from "../core/mirror/listener.ts";
import type { ObjectKey } from "../core/mirror/snapshot.ts";
import type { Log } from "../platform/log.ts";

/** How a run of reconciliation ended. */
export interface RunOutcome {
  id: number;
  kind: "nightly" | "full" | "range" | "import";
  /** The mirror was empty: what the run healed was the initial import itself. */
  isInitialImport: boolean;
  complete: boolean;
  error: string | null;
  /** Findings of drift by class: those that this run healed, and those open now. */
  healed: Readonly<Record<string, number>>;
  left: Readonly<Record<string, number>>;
  /** Findings of drift by class that a person has acknowledged. */
  acknowledged: Readonly<Record<string, number>>;
  amountAtRiskMinor: Readonly<Record<string, bigint>>;
  slices: { failed: number; pending: number };
  /** Objects that were read by id, by outcome. */
  confirmed: Readonly<Record<string, number>>;
}

/** Is notified of reconciliation: of what it writes, and of what follows a run or a heal. */
export interface RunListener extends Listener {
  /** A run ended, and that is stored. Opens its own transactions; throws nothing. */
  runEnded(deps: { db: Knex; log: Log }, run: RunOutcome): Promise<void>;
  /** A person had an object written as the service shows it. After the write, which it cannot undo; throws nothing. */
  healedByHand(deps: { db: Knex; log: Log }, object: ObjectKey, at: Date): Promise<void>;
}

/** For a deployment in which no part listens. */
export const nobodyListens: RunListener = {
  tellWithin: (_, transaction) => transaction(() => Promise.resolve([])),
  runEnded: () => Promise.resolve(),
  healedByHand: () => Promise.resolve(),
};
