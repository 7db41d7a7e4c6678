import type { Knex } from "knex";
import type { Pool } from "pg";
import { insertNoRows } from "../inbox/append.ts";
import type { Log } from "../platform/log.ts";
import { pendingMigrations } from "../platform/postgres/migrations.ts";
import { errorCode } from "../platform/postgres/errors.ts";

/** Something whose absence is worth knowing; `check` rejects when it is away. Its name is shown in public. */
export interface ReadinessCheck {
  name: string;
  check(): Promise<unknown>;
}

export interface ReadinessReport {
  status: "ok" | "degraded" | "unavailable";
  /** Names of what is away. */
  reasons: string[];
}

export interface ReadinessDeps {
  /** The inbox's: the way that events take is the one that is proved. */
  pool: Pool;
  db: Knex;
  log: Log;
  /** Without these events are accepted all the same: they only degrade. */
  degrading: readonly ReadinessCheck[];
}

export interface ReadinessOptions {
  /** How long an answer is given again, whoever asks and however often. */
  cacheMs?: number;
  /** For one check. */
  timeoutMs?: number;
}

/**
 * Whether events can be taken: an insert works and the schema is the one this version knows. Bounded in time,
 * and in the load that asking for it can cause.
 */
export function createReadiness(
  { pool, db, log, degrading }: ReadinessDeps,
  { cacheMs = 1_000, timeoutMs = 2_000 }: ReadinessOptions = {},
): () => Promise<ReadinessReport> {
  const needed = [
    { name: "database", check: () => probeInsert(pool) },
    { name: "schema", check: () => assertCurrentSchema(db) },
  ].map((each) => boundedCheck(each, timeoutMs));
  const wished = degrading.map((each) => boundedCheck(each, timeoutMs));
  let lastReport = "ok";

  async function report(): Promise<ReadinessReport> {
    const [missing, lacking] = await Promise.all([failures(needed), failures(wished)]);
    const found: ReadinessReport = {
      status: missing.length > 0 ? "unavailable" : lacking.length > 0 ? "degraded" : "ok",
      reasons: [...missing, ...lacking].map(({ name }) => name),
    };
    const inWords = [found.status, ...found.reasons].join(" ");
    if (inWords !== lastReport) {
      const errors = Object.fromEntries(
        [...missing, ...lacking].map(({ name, err }) => [name, err]),
      );
      log[found.status === "ok" ? "info" : "warn"]({ ...found, errors }, "readiness has changed");
    }
    lastReport = inWords;
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
}

/** A check that answers in time. One that hangs is not started again: it holds one connection, not many. */
function boundedCheck({ name, check }: ReadinessCheck, timeoutMs: number) {
  let running: Promise<Failure | null> | null = null;
  return async (): Promise<Failure | null> => {
    running ??= attempt(name, check).finally(() => (running = null));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Failure>((resolve) => {
      timer = setTimeout(() => resolve({ name, err: `no answer in ${timeoutMs} ms` }), timeoutMs);
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
    // Where several addresses were tried, the message is empty.
    const text = error instanceof Error ? error.message || errorCode(error) : String(error);
    return { name, err: text ?? "unknown reason" };
  }
}

async function failures(checks: readonly (() => Promise<Failure | null>)[]): Promise<Failure[]> {
  const outcomes = await Promise.all(checks.map((check) => check()));
  return outcomes.filter((outcome) => outcome !== null);
}

/**
 * A server that only reads (a standby, a full disk), or an inbox that is locked or closed to this role, is no place
 * for events. Leaves nothing behind.
 */
async function probeInsert(pool: Pool): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query("begin");
    await client.query("insert into receiver.probes (at) values (now())");
    await insertNoRows(client);
    await client.query("rollback");
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
  }
  client.release(failure ?? false);
  if (failure !== undefined) throw failure;
}

async function assertCurrentSchema(db: Knex): Promise<void> {
  const pending = await pendingMigrations(db);
  if (pending.length > 0) throw new Error(`the database lacks ${pending.join(", ")}`);
}
