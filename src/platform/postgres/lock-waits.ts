import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { UnreachableError } from "../errors.ts";
import { type Random, systemRandom } from "../random.ts";
import { counted, durationText, someOf, withoutControls } from "../readable-text.ts";
import { type RetryPolicy, retryDelayMs } from "../retry-delay.ts";
import { errorCode } from "./errors.ts";

/** A session that holds what another waits for. */
export interface Blocker {
  /** 0: a prepared transaction, which has no process. */
  pid: number;
  /** Its application name; null where it has none. */
  application: string | null;
  /** From `pg_stat_activity`; null where this role may not see it. */
  state: string | null;
  /** Age of its transaction, and of its last query; null where this role may not see it. */
  transactionMs: number | null;
  queryMs: number | null;
}

export interface LockPatience {
  /**
   * How long one attempt waits for a lock, together with all sessions queued behind it. Less than the server's
   * deadlock_timeout (1 s), so that in a deadlock with a worker the migration gives way.
   */
  lockTimeoutMs: number;
  /** After this time without the lock the migration gives up. */
  waitMs: number;
  random: Random;
  /** Gets a line for a person, every few seconds while it waits. */
  onWait(line: string): void;
}

export const defaultLockPatience: LockPatience = {
  lockTimeoutMs: 500,
  waitMs: 30 * 60_000,
  random: systemRandom,
  onWait: () => {},
};

/** Between two attempts every session that queued behind the first one gets its turn. */
const betweenAttempts: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 10_000,
};
const lineEveryMs = 5_000;

export interface Waiting {
  /** Provides a second session that finds the blockers of the waiting one. */
  db: Knex;
  /** Process id of the waiting session. */
  pid: number;
  /** Its present statement, for a person; null: none yet. */
  current(): string | null;
  patience: LockPatience;
}

/**
 * Repeats `attempt` until it gets its locks: after a lock time-out (55P03) or a deadlock (40P01), which must leave
 * nothing behind, it waits with backoff and jitter. Reports to `onWait` the holders of the locks, and how to end them.
 * Throws `UnreachableError` when `waitMs` are over, other errors as they are.
 */
export async function withLockPatience<T>(waiting: Waiting, attempt: (leftMs: number) => Promise<T>): Promise<T> {
  const { patience } = waiting;
  const startedMs = performance.now();
  const leftMs = () => startedMs + patience.waitMs - performance.now();
  const watch = watchBlockers(waiting, () => `gives up ${inTime(leftMs())}`);
  try {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt(Math.max(1, leftMs()));
      } catch (error) {
        if (!isLockConflict(error)) throw error;
        const delayMs = retryDelayMs(betweenAttempts, tries, patience.random) ?? 0;
        if (leftMs() < delayMs) throw gaveUp(waiting, watch.last(), tries, error);
        await sleep(delayMs);
      }
    }
  } finally {
    watch.stop();
  }
}

const isLockConflict = (error: unknown): boolean => ["55P03", "40P01"].includes(errorCode(error) ?? "");

const inTime = (ms: number): string => `in ${durationText(ms)}`;

/** Polls from another session. A poll that gets no connection reports nothing and does no harm. */
function watchBlockers({ db, pid, current, patience }: Waiting, until: () => string) {
  // Twice within an attempt, at least.
  const everyMs = Math.max(10, Math.min(1_000, patience.lockTimeoutMs * 0.4));
  let isAsking = false;
  let last: string | null = null;
  let toldMs = Number.NEGATIVE_INFINITY;
  const look = async (): Promise<void> => {
    const blockers = await readBlockers(db, pid);
    const what = current();
    if (blockers.length === 0 || what === null) return;
    last = `${what} waits for ${describeBlockers(blockers)}`;
    if (performance.now() - toldMs < lineEveryMs) return;
    toldMs = performance.now();
    patience.onWait(`${last} It retries with short waits, so that nothing queues behind it for long, and ${until()}.`);
  };
  const timer = setInterval(() => {
    if (isAsking) return;
    isAsking = true;
    void look()
      .catch(() => {})
      .finally(() => (isAsking = false));
  }, everyMs);
  return {
    /** The last wait that was seen; null: there was none. */
    last: () => last,
    stop: () => clearInterval(timer),
  };
}

function gaveUp({ current, patience }: Waiting, last: string | null, tries: number, cause: unknown): UnreachableError {
  const what = last ?? `${current() ?? "a migration"} waits for a lock of another session.`;
  const waited = counted(Math.round(patience.waitMs / 60_000), "minute");
  return new UnreachableError(
    `Not migrated, and nothing is half done: given up after ${counted(tries, "attempt")} in ${waited}. ${what} ` +
      "Then run it again, or let it wait longer (--wait).",
    { cause },
  );
}

/** Finds the sessions that hold the locks which a session waits for: none where it does not wait. One statement. */
async function readBlockers(db: Knex, pid: number): Promise<Blocker[]> {
  const { rows } = await db.raw<{ rows: Blocker[] }>(
    `select b.pid, coalesce(nullif(a.application_name, ''), a.backend_type) as application, a.state,
            (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::float8 as "transactionMs",
            (extract(epoch from clock_timestamp() - a.query_start) * 1000)::float8 as "queryMs"
     from unnest(pg_blocking_pids(?)) as b(pid) left join pg_stat_activity a on a.pid = b.pid
     group by 1, 2, 3, 4, 5 order by 4 desc nulls last, 1`,
    [pid],
  );
  return rows;
}

const longestName = 60;

/** Names the blockers, and how to end the first, in two sentences. Shows no query: its values may be personal. */
export function describeBlockers(blockers: readonly Blocker[]): string {
  const names = blockers.map(({ pid, application, state, transactionMs, queryMs }) => {
    if (pid === 0) return "a prepared transaction (pg_prepared_xacts)";
    const name = withoutControls(application ?? "unknown").slice(0, longestName);
    const ages = [
      ...(transactionMs === null ? [] : [`transaction ${seconds(transactionMs)}`]),
      ...(queryMs === null ? [] : [`last query ${seconds(queryMs)} ago`]),
    ];
    return `process ${pid} (${[name, ...(state === null ? [] : [state]), ...ages].join(", ")})`;
  });
  const first = blockers.find(({ pid }) => pid !== 0);
  if (first === undefined) return `${someOf(names)}. To end it: rollback prepared.`;
  // A session that is idle has no query that could be canceled.
  const end = first.state === "active" ? "pg_cancel_backend" : "pg_terminate_backend";
  return `${someOf(names)}. To end it: select ${end}(${first.pid});`;
}

const seconds = (ms: number): string => `${Math.max(0, Math.round(ms / 1_000))} s`;
