import type { Knex } from "knex";
import type { Verification } from "../contract/signature/verification.ts";
import { sqlArray } from "../../platform/postgres/values.ts";

type SignatureReason = Extract<Verification, { ok: false }>["reason"];

/** Reasons for refusing or abandoning a request. All up to `no_secret` get the same 401. */
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
  /** The sender disconnected before the body was complete. */
  "aborted",
  /** Not HTTP, headers too long, no host, or an unknown expectation. */
  "malformed_request",
] as const;

export type RejectionReason = (typeof rejectionReasons)[number] | SignatureReason;

/** Counts since the start of the process, for metrics. The public port never shows them. */
export interface ReceiverCounters {
  /** Answered 200 as new. */
  accepted: number;
  /** Answered 200 as a duplicate. */
  duplicate: number;
  rejected: Record<RejectionReason, number>;
  /** Answered 503: the inbox did not store the event in time. */
  unavailable: number;
  /** Answered 500: an error of our own. */
  failed: number;
  /** Connections closed unanswered past a cap: new ones, and those closed to make room. */
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

/** Returns the answers since the last call, by reason. */
export type AnswersSince = () => Map<string, number>;

/** Remembers the last counts. Only reads the counters. */
export function trackAnswers(counters: Readonly<ReceiverCounters>): AnswersSince {
  let before: Record<string, number> = {};
  return () => {
    const now: Record<string, number> = {
      ...counters.rejected,
      accepted: counters.accepted,
      duplicate: counters.duplicate,
      unavailable: counters.unavailable,
      failed: counters.failed,
    };
    const since = Object.entries(now).map(([reason, n]) => [reason, n - (before[reason] ?? 0)] as const);
    before = now;
    return new Map(since.filter(([, n]) => n > 0));
  };
}

/**
 * Adds answers to the current minute, summed over all receivers. One statement; none when there is nothing to add.
 * Called every few seconds, independently of the requests.
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

/** How often the receivers gave each answer in a span of time. One statement, by the minutes of the span. */
export async function countAnswers(
  db: Knex,
  { from, until }: { from: Date; until: Date },
): Promise<Map<string, number>> {
  const { rows } = await db.raw<{ rows: { reason: string; times: string }[] }>(
    `select reason, sum(times) as times from receiver.answers_by_minute where minute >= ? and minute < ? group by reason`,
    [from, until],
  );
  return new Map(rows.map(({ reason, times }) => [reason, Number(times)]));
}

/** The answers of an hour. */
export interface HourOfAnswers {
  /** When the hour begins. */
  at: Date;
  /** Stored: new events and repeats. */
  taken: number;
  /** Everything else, whatever the reason. */
  refused: number;
}

/** The answers of each hour that had any, oldest first. One statement, by the minutes of the span. */
export async function answersByHour(db: Knex, { from, until }: { from: Date; until: Date }): Promise<HourOfAnswers[]> {
  const { rows } = await db.raw<{ rows: { at: Date; taken: string; refused: string }[] }>(
    `select date_trunc('hour', minute) as at,
       coalesce(sum(times) filter (where reason in ('accepted', 'duplicate')), 0) as taken,
       coalesce(sum(times) filter (where reason not in ('accepted', 'duplicate')), 0) as refused
     from receiver.answers_by_minute where minute >= ? and minute < ? group by 1 order by 1`,
    [from, until],
  );
  return rows.map(({ at, taken, refused }) => ({ at, taken: Number(taken), refused: Number(refused) }));
}

const answersKeptDays = 7;

/** Forgets answers that no rule reads any more. One statement; idempotent. Returns the number of rows. */
export async function forgetAnswers(db: Knex, now: Date): Promise<number> {
  const before = new Date(now.getTime() - answersKeptDays * 86_400_000);
  return db("receiver.answers_by_minute").where("minute", "<", before).delete();
}
