import type { Knex } from "knex";
import type { Pool } from "pg";
import { tallyhook } from "../../platform/command-line.ts";
import { CommitsHang, assertCommitsEnd, insertNoRows } from "../inbox/store-batch.ts";
import type { Log } from "../../platform/log.ts";
import { pendingMigrations, refusingMigrations } from "../../platform/postgres/migrations.ts";
import { errorCode } from "../../platform/postgres/errors.ts";
import { readLockWaits } from "../inbox/locked-events.ts";
import { counted, durationText } from "../../platform/readable-text.ts";

/** A dependency to watch. `check` rejects when it is down. Its name is public. */
export interface ReadinessCheck {
  name: string;
  check(): Promise<unknown>;
}

export interface ReadinessReport {
  status: "ok" | "degraded" | "unavailable";
  /** Names of the dependencies that are down. */
  reasons: string[];
  /** Details from the checks that are safe to publish. */
  details?: string[];
}

/** An error of a check whose message is safe to publish. */
class Degraded extends Error {
  readonly detail: string;
  constructor(detail: string, message: string) {
    super(message);
    this.detail = detail;
  }
}

export interface ReadinessDeps {
  /** The inbox's pool, so that the probe uses the same path as events. */
  pool: Pool;
  db: Knex;
  log: Log;
  /** Events are accepted without these dependencies: when one is down, the receiver is `degraded`. */
  degrading: readonly ReadinessCheck[];
}

export interface ReadinessOptions {
  /** How long an answer is cached, for all callers. */
  cacheMs?: number;
  /** Time-out of one check. */
  timeoutMs?: number;
}

/**
 * Checks whether events can be stored: an insert works, and the schema has every migration of this version. Limits its
 * own time and the load that callers can cause.
 */
export function createReadiness(
  { pool, db, log, degrading }: ReadinessDeps,
  { cacheMs = 1_000, timeoutMs = 2_000 }: ReadinessOptions = {},
): () => Promise<ReadinessReport> {
  const needed = [
    { name: "database", check: () => probeInsert(pool) },
    { name: "schema", check: () => assertCurrentSchema(db) },
  ].map((each) => boundedCheck(each, timeoutMs));
  const optional = degrading.map((each) => boundedCheck(each, timeoutMs));
  let lastReport = "ok";

  async function report(): Promise<ReadinessReport> {
    const [fatal, tolerable] = await Promise.all([failures(needed), failures(optional)]);
    const all = [...fatal, ...tolerable];
    const details = all.flatMap(({ detail }) => detail ?? []);
    const found: ReadinessReport = {
      status: fatal.length > 0 ? "unavailable" : tolerable.length > 0 ? "degraded" : "ok",
      reasons: all.map(({ name }) => name),
      ...(details.length === 0 ? {} : { details }),
    };
    const summary = [found.status, ...found.reasons].join(" ");
    if (summary !== lastReport) {
      const errors = Object.fromEntries(all.map(({ name, err }) => [name, err]));
      log[found.status === "ok" ? "info" : "warn"]({ ...found, errors }, "readiness has changed");
    }
    lastReport = summary;
    return found;
  }

  let current: Promise<ReadinessReport> | null = null;
  return () => {
    current ??= report().finally(() => {
      setTimeout(() => (current = null), cacheMs).unref();
    });
    return current;
  };
}

interface Failure {
  name: string;
  err: string;
  detail?: string;
}

/** A check with a time-out. A check that hangs is not started again, so it holds one connection and not many. */
function boundedCheck({ name, check }: ReadinessCheck, timeoutMs: number) {
  let running: Promise<Failure | null> | null = null;
  return async (): Promise<Failure | null> => {
    running ??= attempt(name, check).finally(() => (running = null));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Failure>((resolve) => {
      timer = setTimeout(() => resolve({ name, err: `no answer within ${timeoutMs} ms` }), timeoutMs);
    });
    const outcome = await Promise.race([running, late]);
    clearTimeout(timer);
    return outcome;
  };
}

async function attempt(name: string, check: () => Promise<unknown>): Promise<Failure | null> {
  try {
    await check();
    return null;
  } catch (error) {
    // The message is empty when several addresses were tried.
    const text = error instanceof Error ? error.message || errorCode(error) : String(error);
    const detail = error instanceof Degraded ? { detail: error.detail } : {};
    return { name, err: text ?? "unknown reason", ...detail };
  }
}

async function failures(checks: readonly (() => Promise<Failure | null>)[]): Promise<Failure[]> {
  const outcomes = await Promise.all(checks.map((check) => check()));
  return outcomes.filter((outcome) => outcome !== null);
}

/**
 * Probes an insert and its commit without leaving a row. It fails on a read-only server (a standby, a full disk), on an
 * inbox that is locked or that this role may not write to, and where a commit waits for a synchronous standby that is
 * away: a rollback would not wait.
 */
async function probeInsert(pool: Pool): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await assertCommitsEnd(client);
    await client.query("begin; savepoint before_the_row");
    await client.query("insert into receiver.probes (at) values (now())");
    await insertNoRows(client);
    await client.query("rollback to savepoint before_the_row; commit");
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
  }
  client.release(failure !== undefined && !(failure instanceof CommitsHang));
  if (failure !== undefined) throw failure;
}

async function assertCurrentSchema(db: Knex): Promise<void> {
  const pending = await pendingMigrations(db);
  if (pending.length > 0) throw new Error(`the database lacks ${pending.join(", ")}: run "${tallyhook("migrate")}"`);
  const [refusing] = await refusingMigrations(db);
  if (refusing !== undefined) throw new Error(`the database has ${refusing.name} of a newer version: start that one`);
}

/** Fails while events have waited for a lock for over a minute. Anyone may read the process and the time, and no more. */
export const lockWaitCheck = (db: Knex): ReadinessCheck => ({
  name: "locks",
  async check() {
    const waits = await readLockWaits(db);
    if (waits === null) return;
    const { events, waitedMs, holder } = waits;
    const [process = "a session that is not known"] = /^process \d+/.exec(holder) ?? [];
    const wait = `${counted(events, "event waits for a lock", "events wait for locks")}, the first for ${durationText(waitedMs)}, of`;
    throw new Degraded(`${wait} ${process}`, `${wait} ${holder}`);
  },
});
