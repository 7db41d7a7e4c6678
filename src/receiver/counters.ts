import type { Knex } from "knex";
import type { Verification } from "../contract/signature/verification.ts";
import { sqlArray } from "../platform/postgres/values.ts";

type SignatureReason = Extract<Verification, { ok: false }>["reason"];

/** Why a request was refused or came to nothing; the first group answers 401, all alike. */
export const rejectionReasons = [
  "missing_header",
  "duplicate_header",
  "malformed_header",
  "no_match",
  "stale",
  "no_secret",
  "not_found",
  "method_not_allowed",
  "content_encoding",
  "too_large",
  /** Headers or body did not arrive in time. */
  "slow",
  /** The sender went away before the body was complete. */
  "aborted",
  /** Not HTTP, headers that are too long, no host, an unknown expectation. */
  "malformed_request",
] as const;

export type RejectionReason = (typeof rejectionReasons)[number] | SignatureReason;

/** Numbers since the start of the process, for metrics. They never appear on the public port. */
export interface ReceiverCounters {
  /** Answered 200 as new. */
  accepted: number;
  /** Answered 200 as known already. */
  duplicate: number;
  rejected: Record<RejectionReason, number>;
  /** Answered 503: the inbox did not take the event in time. */
  unavailable: number;
  /** Answered 500: a fault of ours. */
  failed: number;
  /** Connections closed unanswered, past a cap: new ones, and those that made room for a new one. */
  connectionsRefused: number;
  /** Webhook requests that have no answer yet. */
  inFlight: number;
}

export function createReceiverCounters(): ReceiverCounters {
  const rejected = Object.fromEntries(rejectionReasons.map((reason) => [reason, 0]));
  return {
    accepted: 0,
    duplicate: 0,
    rejected: rejected as Record<RejectionReason, number>,
    unavailable: 0,
    failed: 0,
    connectionsRefused: 0,
    inFlight: 0,
  };
}

/** Adds up what was answered since the last time, by reason. */
export type CountAnswers = () => Map<string, number>;

/** Remembers how far the counters were counted; they themselves are only read. */
export function createAnswerCounts(counters: Readonly<ReceiverCounters>): CountAnswers {
  let before: Record<string, number> = {};
  return () => {
    const now: Record<string, number> = {
      ...counters.rejected,
      accepted: counters.accepted,
      duplicate: counters.duplicate,
    };
    const since = Object.entries(now).map(
      ([reason, n]) => [reason, n - (before[reason] ?? 0)] as const,
    );
    before = now;
    return new Map(since.filter(([, n]) => n > 0));
  };
}

/**
 * Adds answers to those of this minute, for all receivers together. One statement, and none where there was nothing: it
 * is called every few seconds, apart from the requests.
 */
export async function storeAnswers(db: Knex, answers: ReadonlyMap<string, number>): Promise<void> {
  if (answers.size === 0) return;
  await db.raw(
    `insert into receiver.answers_by_minute as a (minute, reason, times)
     select date_trunc('minute', now()), g.reason, g.times from unnest(?::text[], ?::bigint[]) as g(reason, times)
     order by g.reason on conflict (minute, reason) do update set times = a.times + excluded.times`,
    [sqlArray([...answers.keys()]), sqlArray([...answers.values()])],
  );
}
