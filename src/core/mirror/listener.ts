import type { Knex } from "knex";
import type { Log } from "../../platform/log.ts";

/**
 * Receives changes of the mirror, in the transaction that makes them. Worker and reconciliation know only this
 * interface; alerts implement it (src/parts/alerts/run-alerts.ts), and no other room needs them.
 */
export interface Listener {
  /**
   * Runs a transaction that changes data and reports the changes, so that a failure of the listener cannot fail the
   * change. `transaction` opens the transaction and must be repeatable. Throws what `transaction` throws.
   */
  tellWithin<T>(log: Log, transaction: (tell: Tell) => Promise<T>): Promise<T>;
}

/** Reports a transaction's writes, within the transaction. Returns the objects to refetch. */
export type Tell = (trx: Knex.Transaction, news: Partial<News>, source: NewsSource) => Promise<MissingFact[]>;

/** Source of a fact. */
export type NewsSource = "event" | "read" | "reconciliation" | "import";

/** The writes of a transaction that may be worth an alert. */
export interface News {
  states: readonly ToldState[];
  /** Card numbers found in the bodies of events. */
  masked: readonly MaskedObject[];
  /** States that are dated in the future. */
  future: readonly FutureState[];
  dead: readonly DeadEvent[];
}

export interface WrittenState {
  group: string;
  id: string;
  json: string;
  columns: Readonly<Record<string, unknown>>;
}

export type ToldState = WrittenState & { maskedCardNumbers: MaskedObject | null };

/** An object in which card numbers were masked, and the fields that contained them. */
export interface MaskedObject {
  resource: string;
  id: string;
  paths: readonly string[];
}

/** A state of a group of fields, and the object whose read shows it. */
export interface FutureState {
  group: string;
  id: string;
  /** In the fixed form of times. */
  changedAt: string;
  confirmedBy: { resource: string; id: string } | null;
}

export interface DeadEvent {
  seq: number;
  reason: string | null;
}

/** An object that the listener needs and the mirror lacks: the transaction should order a refetch of it. */
export interface MissingFact {
  resource: "subscription";
  id: string;
}
