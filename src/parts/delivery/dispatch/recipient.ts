import type { Knex } from "knex";
import { TallyhookError } from "../../../platform/errors.ts";
import type { ClaimedRun } from "./runs.ts";

/**
 * A recipient of the dispatch, which gets the items of an object one after the other: a handler, or a destination of
 * forwarding.
 */
export interface Recipient {
  /** Key of its position. */
  readonly name: string;
  /** The start of its first run: `now`, `beginning` or a time. */
  readonly from: string;
  /** How many objects it takes at a time in one process. */
  readonly concurrency: number;
  /** How long an attempt may take. */
  readonly deadlineMs: number;
  /** After so many failed attempts a run is dead. */
  readonly attempts: number;
}

/** The rows that runs are made of, by the name that `dispatch.handlers` keeps. */
export type SourceName = "changes" | "webhooks";

/** Numbered rows, filtered for one recipient. Belongs to the recipient. */
export interface Source {
  readonly name: SourceName;
  /** The number up to which it can be read. One statement. */
  readableUntil(db: Knex): Promise<number>;
  /** A number before everything that is dated at that time or later; little that is older follows. */
  positionAt(db: Knex, time: Date): Promise<number>;
  /** The next rows for the recipient. At READ COMMITTED. */
  read(db: Knex, page: SourcePage): Promise<SourceRows>;
  /**
   * For a source that keeps rows until they are read: records this reader's position. Called in the transaction that
   * read.
   */
  keepPosition?(trx: Knex.Transaction, position: number): Promise<void>;
}

export interface SourcePage {
  after: number;
  /** The most rows to read. */
  limit: number;
  /** Rows dated earlier are left out. */
  startsAt: Date | null;
}

export interface SourceRows {
  rows: SourceRow[];
  /** All rows up to this number were read: continue from here. */
  position: number;
  /** More rows can be read now. */
  hasMore: boolean;
}

export interface SourceRow {
  seq: number;
  /** The object that it is about: the rows of one are given in the order of their numbers. */
  resource: string;
  id: string;
  kind: string;
  /** The run's copy of the row, as JSON. */
  item: object;
}

/** Creates and executes the runs of one kind of recipient. */
export interface Work<R extends Recipient> {
  sourceOf(recipient: R): Source;
  /** Prepares claimed runs, in their order. An error here is no run's failure: they are deferred. */
  prepare(claimed: readonly { recipient: R; run: ClaimedRun }[]): Promise<Attempt[]>;
}

export interface Attempt {
  /**
   * Resolves once the run is done; an error is the run's failure. With `removesRun`, `removeRun` is called in the
   * transaction that does it, and throws if another process has the run.
   */
  make(removeRun: (trx: Knex.Transaction) => Promise<void>): Promise<void>;
  removesRun: boolean;
  /** The number of the event that led to it; null where none did. */
  eventSeq: number | null;
}

export interface FailureFacts {
  /** The earliest next attempt of any run of the recipient. */
  holdMs?: number | null;
  /** A repeat cannot help: the run is dead immediately. */
  isFinal?: boolean;
  /** The recipient accepts no more: it is paused until a person resumes it. */
  isRefusal?: boolean;
}

/** An attempt failed, for a reason in words of our own: fit to be stored and shown, without personal data. */
export class AttemptFailed extends TallyhookError {
  readonly facts: FailureFacts;

  constructor(reason: string, facts: FailureFacts = {}, options: { cause?: unknown } = {}) {
    super(reason, options);
    this.facts = facts;
  }
}
