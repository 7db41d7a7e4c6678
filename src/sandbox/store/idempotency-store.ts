import type { Answer } from "../answer.ts";

/** How long a key is remembered (spec, Limits). */
const lifetimeMs = 24 * 60 * 60 * 1000;

export type IdempotencyLookup =
  | { state: "new" }
  | { state: "in_flight" }
  | { state: "conflict" }
  | { state: "done"; answer: Answer };

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
  /** What is finished, oldest first, for a state that is written down. */
  done(): DoneEntry[];
  restore(entries: readonly DoneEntry[]): void;
}

interface DoneEntry {
  scope: string;
  fingerprint: string;
  atMs: number;
  answer: Answer;
}

interface Entry {
  fingerprint: string;
  atMs: number;
  answer: Answer | null;
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
      if (entry.answer === null) return { state: "in_flight" };
      return { state: "done", answer: entry.answer };
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
    done: () =>
      Array.from(entries).flatMap(([scope, { fingerprint, atMs, answer }]) =>
        answer === null ? [] : { scope, fingerprint, atMs, answer },
      ),
    restore(finished) {
      for (const { scope, ...entry } of finished) entries.set(scope, entry);
    },
  };
}
