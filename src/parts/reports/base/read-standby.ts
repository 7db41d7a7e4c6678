import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { ConfigurationError, UnreachableError, UsageError } from "../../../platform/errors.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { type Replay, isRecoveryConflict, lagAdvice, readReplay } from "../../../platform/postgres/standby.ts";
import { durationText } from "../../../platform/readable-text.ts";
import type { Write } from "../render/rendering.ts";
import { assertHistoryFixed, historyFixedAfterSeconds, latestAsOf } from "./period.ts";
import type { StandbyRead } from "./report-facts.ts";

/** A physical standby that reports are read from. */
export interface ReportsStandby {
  /** Throws `UnreachableError` where it does not answer. */
  connect(): Promise<Knex>;
  /** Throws `UnreachableError` while its functions are not those of the primary. */
  assertMigrated(db: Knex): Promise<void>;
  /** A report of now is refused past this. One as of a time needs no limit: it is exact or refused. */
  maxLagSeconds: number;
}

const variable = "REPORTS_DATABASE_URL";

const beforeRepeatMs = 2_000;

/**
 * Calls `read` with the standby and how far it is. Once more if the standby cancels it, unless a part was written.
 * Throws `UnreachableError` where the standby is too far behind, or cancels it again, `UsageError` where it has not
 * replayed the changes that a report as of that time needs, and the errors of `readReplay`.
 */
export async function readFromStandby<T>(
  { db: primary, standby, write }: { db: Knex; standby: ReportsStandby; write: Write },
  asOf: Date | undefined,
  read: (from: { db: Knex; standby: StandbyRead }, write: Write) => Promise<T>,
): Promise<T> {
  const db = await standby.connect();
  const pair = pairOf(primary, db);
  let hasWritten = false;
  const noteWritten: Write = (chunk) => {
    hasWritten = true;
    return write(chunk);
  };
  for (let attempt = 1; ; attempt++) {
    const replay =
      asOf === undefined ? await readLiveReplay(pair, standby.maxLagSeconds) : await waitForReplay(pair, asOf);
    await standby.assertMigrated(db);
    const { until, lagMs, lagBytes } = replay;
    const how = { replayedUntil: until.toISOString(), lagMs, lagBytes };
    try {
      return await read({ db, standby: how }, noteWritten);
    } catch (error) {
      if (!isRecoveryConflict(error) && !isConnectionEnded(error)) throw error;
      if (attempt === 2 || hasWritten) throw cancelled(error);
      // The standby replays the changes that the report held up.
      await sleep(beforeRepeatMs);
    }
  }
}

type Pair = Parameters<typeof readReplay>[0];

const pairOf = (primary: Knex, standby: Knex): Pair => ({
  primary: { db: primary, variable: "DATABASE_URL" },
  standby: { db: standby, variable },
});

/** Reads how far the standby is, even if no report may be read from it. Throws what `readReplay` throws. */
export const readStandby = (primary: Knex, standby: Knex): Promise<Replay> => readReplay(pairOf(primary, standby));

async function readLiveReplay(pair: Pair, maxLagSeconds: number): Promise<Replay> {
  const replay = await readReplay(pair);
  if (replay.lagMs <= maxLagSeconds * 1_000) return replay;
  const why = await lagAdvice(pair.standby.db);
  throw new UnreachableError(
    `${variable}: the standby is ${durationText(replay.lagMs)} behind the primary, and REPORTS_MAX_LAG_SECONDS allows ` +
      `${maxLagSeconds} s. Wait, raise it, or give an --as-of before ${fixedBefore(replay).toISOString()}. ${why}`.trimEnd(),
  );
}

/** Longer than a standby lags that keeps up. */
const waits = { times: 30, ms: 100 } as const;

/**
 * Waits shortly until the standby has replayed everything that can still enter the history of a time: transactions that
 * had begun by then and are committed within the time limit for writers.
 */
async function waitForReplay(pair: Pair, asOf: Date): Promise<Replay> {
  assertHistoryFixed(asOf, await latestAsOf(pair.primary.db));
  for (let waited = 0; ; waited++) {
    const replay = await readReplay(pair);
    const latest = fixedBefore(replay);
    if (asOf <= latest) return replay;
    if (waited === waits.times) {
      throw new UsageError(
        `--as-of ${asOf.toISOString()} is later than what the standby of ${variable} has for certain: it may lack ` +
          `records of that time. Use ${latest.toISOString()} or earlier, or wait until it has caught up. ` +
          (await lagAdvice(pair.standby.db)),
      );
    }
    await sleep(waits.ms);
  }
}

/** The latest time whose history the standby has whole. */
const fixedBefore = ({ until }: Replay): Date => new Date(until.getTime() - historyFixedAfterSeconds * 1_000);

/**
 * Whether the server ended the connection. A standby does so to an idle transaction that holds up the replay. The
 * driver reports it by text only.
 */
const isConnectionEnded = (error: unknown): boolean =>
  error instanceof Error && errorCode(error) === undefined && /\bconnection\b/i.test(error.message);

const cancelled = (cause: unknown): UnreachableError =>
  new UnreachableError(
    `${variable}: the standby ended the report, which held up the replay of the primary's changes ` +
      `(${errorCode(cause) ?? "the connection ended"}). Run it again. If it happens often, set hot_standby_feedback = on on the standby (the ` +
      "primary then keeps what a report still reads), or raise max_standby_streaming_delay there (the standby then lags " +
      "for as long as a report takes).",
    { cause },
  );

/**
 * Throws `ConfigurationError` for a standby in the place of the primary: its lag could not be determined. One
 * statement.
 */
export async function assertPrimary(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: { is_standby: boolean }[] }>("select pg_is_in_recovery() as is_standby");
  if (rows[0]?.is_standby !== true) return;
  throw new ConfigurationError(
    "DATABASE_URL: the server is a standby, so a report could not tell what it lacks. Point DATABASE_URL at the " +
      `primary, and ${variable} at the standby.`,
  );
}
