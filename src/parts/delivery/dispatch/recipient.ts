import type { Knex } from "knex";
import { TallyhookError } from "../../../platform/errors.ts";
import type { ClaimedRun } from "./runs.ts";

/** Whom the engine gives what is new, an object's news one after the other: a handler, or a destination of forwarding. */
export interface Recipient {
  /** Its position is kept under it. */
  readonly name: string;
  /** Where it begins when it runs for the first time: `now`, `beginning` or a time. */
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

/** Numbered rows, of which a recipient gets those that it wants. Belongs to the recipient. */
export interface Source {
  readonly name: SourceName;
  /** The number up to which it can be read. One statement. */
  readableUntil(db: Knex): Promise<number>;
  /** A number before everything that is dated at that time or later; little that is older follows. */
  positionAt(db: Knex, time: Date): Promise<number>;
  /** The next rows that are wanted. At READ COMMITTED. */
  read(db: Knex, page: SourcePage): Promise<SourceRows>;
  /** Where the source keeps what its readers have not read: notes how far this one is. In the transaction that read. */
  keepPosition?(trx: Knex.Transaction, position: number): Promise<void>;
}

export interface SourcePage {
  after: number;
  /** How many rows are looked at, at most. */
  limit: number;
  /** What is dated before it is not wanted. */
  startsAt: Date | null;
}

export interface SourceRows {
  rows: SourceRow[];
  /** All up to it were looked at: the position from which to read on. */
  position: number;
  /** More can be read at once. */
  hasMore: boolean;
}

export interface SourceRow {
  seq: number;
  /** The object that it is about: the rows of one are given in the order of their numbers. */
  resource: string;
  id: string;
  kind: string;
  /** What the run keeps of it, as JSON. */
  item: object;
}

/** How the runs of a kind of recipient are made and done. */
export interface Work<R extends Recipient> {
  sourceOf(recipient: R): Source;
  /** Makes ready for runs that were claimed, in their order. What it throws is no run's failure: they are put off. */
  prepare(claimed: readonly { recipient: R; run: ClaimedRun }[]): Promise<Attempt[]>;
}

export interface Attempt {
  /**
   * Resolves once the run is done; what it throws is its failure. With `removesRun`, `removeRun` is called in the
   * transaction that does it, and throws if another process has the run.
   */
  make(removeRun: (trx: Knex.Transaction) => Promise<void>): Promise<void>;
  removesRun: boolean;
  /** The number of the event that led to it; null where none did. */
  eventSeq: number | null;
}

export interface FailureFacts {
  /** Not tried again earlier, by whatever run of the recipient. */
  holdMs?: number | null;
  /** Trying again cannot help: the run is dead at once. */
  isFinal?: boolean;
  /** The recipient wants nothing more: it is paused until a person resumes it. */
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
