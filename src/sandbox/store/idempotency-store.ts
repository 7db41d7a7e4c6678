import type { Answer } from "../answer.ts";

/** How long a key is remembered (spec, Limits). */
const lifetimeMs = 24 * 60 * 60 * 1000;

export type IdempotencyLookup =
  | { state: "new" }
  | { state: "in_flight" }
  | { state: "conflict" }
  | { state: "done"; answer: Answer }
  | { state: "unfinished"; orderId: string };

/**
 * What requests with a key were answered. Answers hold references to snapshots of records, not their text, so that
 * a million of them fit in memory; a replay renders the same bytes again.
 */
export interface IdempotencyStore {
  lookUp(scope: string, fingerprint: string, nowMs: number): IdempotencyLookup;
  begin(scope: string, fingerprint: string, nowMs: number): void;
  finish(scope: string, answer: Answer): void;
  /** The key is free again: what was refused or failed does not burn it (statements 87, 88). */
  abandon(scope: string): void;
  /** The key stands for an order whose charge the gateway did not answer: a repeat completes it. */
  suspend(scope: string, orderId: string): void;
  /** What is finished, oldest first, for a state that is written down. */
  done(): DoneEntry[];
  unfinished(): UnfinishedEntry[];
  restore(entries: readonly (DoneEntry | UnfinishedEntry)[]): void;
}

interface KeyUse {
  fingerprint: string;
  atMs: number;
}

interface DoneEntry extends KeyUse {
  scope: string;
  answer: Answer;
}

interface UnfinishedEntry extends KeyUse {
  scope: string;
  orderId: string;
}

interface Entry extends KeyUse {
  answer: Answer | null;
  /** Of an order that is neither under way nor answered. */
  orderId?: string;
}

export function createIdempotencyStore(): IdempotencyStore {
  /** In order of insertion, so that what is out of date stands first. */
  const entries = new Map<string, Entry>();

  function forgetOld(nowMs: number): void {
    for (const [scope, entry] of entries) {
      if (entry.atMs + lifetimeMs > nowMs) return;
      entries.delete(scope);
    }
  }

  return {
    lookUp(scope, fingerprint, nowMs) {
      const entry = entries.get(scope);
      if (entry === undefined || entry.atMs + lifetimeMs <= nowMs) return { state: "new" };
      if (entry.fingerprint !== fingerprint) return { state: "conflict" };
      if (entry.answer !== null) return { state: "done", answer: entry.answer };
      if (entry.orderId === undefined) return { state: "in_flight" };
      return { state: "unfinished", orderId: entry.orderId };
    },
    begin(scope, fingerprint, nowMs) {
      forgetOld(nowMs);
      entries.delete(scope);
      entries.set(scope, { fingerprint, atMs: nowMs, answer: null });
    },
    finish(scope, answer) {
      const entry = entries.get(scope);
      if (entry !== undefined) entry.answer = answer;
    },
    abandon: (scope) => {
      entries.delete(scope);
    },
    suspend(scope, orderId) {
      const entry = entries.get(scope);
      if (entry !== undefined) entry.orderId = orderId;
    },
    done: () =>
      Array.from(entries).flatMap(([scope, { fingerprint, atMs, answer }]) =>
        answer === null ? [] : { scope, fingerprint, atMs, answer },
      ),
    unfinished: () =>
      Array.from(entries).flatMap(([scope, { fingerprint, atMs, orderId }]) =>
        orderId === undefined ? [] : { scope, fingerprint, atMs, orderId },
      ),
    restore(kept) {
      for (const { scope, ...entry } of kept) entries.set(scope, { answer: null, ...entry });
    },
  };
}
