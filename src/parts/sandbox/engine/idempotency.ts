import { hash } from "node:crypto";
import type { Idempotency } from "../../../core/contract/endpoint.ts";
import type { Answer } from "./answer.ts";
import { GatewayTimeout, ApiError } from "./api-error.ts";

const uuidV4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * The idempotency key of a request, or null. Refuses a malformed key, and a missing one where the endpoint requires it.
 */
export function idempotencyKey(header: string | undefined, rule: Idempotency): string | null {
  if (rule === "none") return null;
  if (header === undefined) {
    if (rule !== "required") return null;
    throw new ApiError("missing_idempotency_key", "Send X-SVC-Idempotency-Key, a UUID v4.");
  }
  if (!uuidV4.test(header)) {
    throw new ApiError("invalid_idempotency_key", "X-SVC-Idempotency-Key must be a UUID v4.");
  }
  return header.toLowerCase();
}

/**
 * Executes a request once per key. A repeat within 24 hours gets the stored answer; a different payload is a conflict.
 * Only 2xx answers are stored. `resumes` names the order that an earlier request left pending. The scope of a key is
 * the endpoint with its path.
 */
export async function oncePerKey(
  space: { readonly time: { nowMs(): number }; readonly idempotency: IdempotencyStore },
  request: { key: string; endpoint: string; body: unknown },
  execute: (resumes: string | null) => Answer | Promise<Answer>,
): Promise<Answer> {
  const scope = `${request.key} ${request.endpoint}`;
  const fingerprint = hash("sha1", canonicalJson(request.body), "base64");
  const nowMs = space.time.nowMs();
  const known = space.idempotency.lookUp(scope, fingerprint, nowMs);
  if (known.state === "done") return known.answer;
  if (known.state === "conflict") {
    throw new ApiError("idempotency_key_conflict", "The idempotency key was already used with a different payload.");
  }
  if (known.state === "in_flight") {
    throw new ApiError("request_in_progress", "A request with this idempotency key is still in progress.");
  }
  const resumes = known.state === "unfinished" ? known.orderId : null;
  space.idempotency.begin(scope, fingerprint, nowMs);
  try {
    const answer = await execute(resumes);
    space.idempotency.finish(scope, answer);
    return answer;
  } catch (error) {
    const pending = error instanceof GatewayTimeout ? error.orderId : resumes;
    if (pending === null) space.idempotency.abandon(scope);
    else space.idempotency.suspend(scope, pending);
    throw error;
  }
}

/** JSON whose text does not depend on the order of keys or on white space, so that equal payloads compare equal. */
function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (value instanceof Uint8Array) return hash("sha256", value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const record = value as Record<string, unknown>;
  const members = Object.keys(record)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(record[key])}`);
  return `{${members.join(",")}}`;
}

const lifetimeMs = 24 * 60 * 60 * 1000;

export type IdempotencyLookup =
  | { state: "new" }
  | { state: "in_flight" }
  | { state: "conflict" }
  | { state: "done"; answer: Answer }
  | { state: "unfinished"; orderId: string };

/**
 * The answers to requests with a key. They hold references to snapshots of records, not their text, so that a million
 * of them fit in memory; a replay renders the same bytes again.
 */
export interface IdempotencyStore {
  lookUp(scope: string, fingerprint: string, nowMs: number): IdempotencyLookup;
  begin(scope: string, fingerprint: string, nowMs: number): void;
  finish(scope: string, answer: Answer): void;
  /** Frees the key: a refused or failed request does not use it up. */
  abandon(scope: string): void;
  /** Ties the key to an order whose charge the gateway did not answer. A repeat completes that order. */
  suspend(scope: string, orderId: string): void;
  /** Completed entries, oldest first, for a saved state. */
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
  /** Set while the order is neither in progress nor answered. */
  orderId?: string;
}

export function createIdempotencyStore(): IdempotencyStore {
  /** In order of insertion, so that expired entries come first. */
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
