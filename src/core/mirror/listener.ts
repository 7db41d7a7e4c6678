import type { Knex } from "knex";
import type { Log } from "../../platform/log.ts";

/**
 * Who is told of changes of the mirror, in the transaction that makes them. Worker and reconciliation know only this;
 * alerts are the listener (src/parts/alerts/alert-listener.ts), and no other room needs them.
 */
export interface Listener {
  /**
   * Runs a transaction that changes data and tells of it, so that a failure of the listener cannot fail the change.
   * `transaction` opens the transaction and must be repeatable. Throws what `transaction` throws.
   */
  tellWithin<T>(log: Log, transaction: (tell: Tell) => Promise<T>): Promise<T>;
}

/** Tells what a transaction wrote, within it. Returns the objects to refetch. */
export type Tell = (trx: Knex.Transaction, news: Partial<News>, source: NewsSource) => Promise<MissingFact[]>;

/** How a fact was learned. */
export type NewsSource = "event" | "read" | "reconciliation" | "import";

/** What a transaction wrote that somebody may have to be told of. */
export interface News {
  states: readonly ToldState[];
  /** Card numbers found in the bodies of events. */
  masked: readonly MaskedObject[];
  /** States that are dated in the future. */
  future: readonly FutureState[];
  /** Events that became dead. */
  dead: readonly DeadEvent[];
}

/** A state that was just written. */
export interface WrittenState {
  group: string;
  id: string;
  /** The content of the state. */
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
