import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { UnreachableError } from "../errors.ts";
import {
  type Blocker,
  type LockPatience,
  defaultLockPatience,
  describeBlockers,
  withLockPatience,
} from "./lock-waits.ts";
import { type Run, runOn } from "./sql-file.ts";

export interface MigrateOptions extends Partial<LockPatience> {
  watcher?: MigrationWatcher;
}

/** Receives each step of a migration while it runs, as a rehearsal needs. */
export interface MigrationWatcher {
  /** After a statement, before its transaction commits. `run` queries on the same connection. */
  ran(step: MigrationStep, run: Run): Promise<void>;
  /** The locks of the steps before are released. */
  released(): void;
}

export interface MigrationStep {
  file: string;
  /** Null: the whole file, or several. */
  line: number | null;
  /** Its first words. */
  statement: string;
  ms: number;
  /** It runs by itself, outside a transaction. */
  isOnline: boolean;
}

/** The key of the advisory lock that is held while the schema changes. An arbitrary fixed number. */
const advisoryLock = 7_255_011_932;
const liftedLimits = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "transaction_timeout",
];

/** The connection that migrates, alone under the advisory lock. */
export interface MigrationSession {
  run: Run;
  transaction<T>(work: (trx: Knex.Transaction) => Promise<T>): Promise<T>;
  /** `withLockPatience` for this connection. */
  patiently<T>(attempt: (leftMs: number) => Promise<T>): Promise<T>;
  /**
   * Names the step for waiting sessions' reports, and notifies the watcher; `run` belongs to the connection that works.
   */
  step<T>(step: Omit<MigrationStep, "ms">, run: Run, work: () => Promise<T>): Promise<T>;
  watcher: MigrationWatcher | undefined;
  lockTimeoutMs: number;
}

export async function withMigrationSession(
  db: Knex,
  { watcher, ...given }: MigrateOptions,
  work: (session: MigrationSession) => Promise<void>,
): Promise<void> {
  const patience = { ...defaultLockPatience, ...given };
  const client = db.client as {
    acquireConnection(): Promise<unknown>;
    releaseConnection(connection: unknown): Promise<void>;
  };
  const connection = await client.acquireConnection();
  const run = runOn(db, connection);
  let current: string | null = null;
  try {
    await holdLock(run, patience);
    // Operators limit statements so that none blocks others for long; a migration must run to its end. The locks that
    // others wait for have a limit of their own.
    await run(setLimits(`case name when 'lock_timeout' then '${patience.lockTimeoutMs}' else '0' end`));
    const { rows } = await run<{ pid: number }>("select pg_backend_pid() as pid");
    const waiting = { db, pid: rows[0]?.pid ?? 0, current: () => current, patience };
    await work({
      run,
      transaction: (inside) => db.transaction(inside, { connection }),
      patiently: (attempt) => withLockPatience(waiting, attempt),
      async step(step, runIn, does) {
        const { file, line, statement } = step;
        current = `${file}${line === null ? "" : `, line ${line}`} (${statement})`;
        const startedMs = performance.now();
        const result = await does();
        await watcher?.ran({ ...step, ms: performance.now() - startedMs }, runIn);
        return result;
      },
      watcher,
      lockTimeoutMs: patience.lockTimeoutMs,
    });
  } finally {
    // A connection that was lost has no settings and no lock any more.
    await run(`${setLimits("reset_val")}; select pg_advisory_unlock(${advisoryLock})`).catch(() => {});
    await client.releaseConnection(connection);
  }
}

const setLimits = (value: string): string =>
  `select set_config(name, ${value}, false) from pg_settings where name in ('${liftedLimits.join("', '")}')`;

const pollMs = 250;
const lineEveryMs = 5_000;

/**
 * Waits for its turn by asking again: a statement that waited for it would hold a snapshot, for which the other
 * process' `create index concurrently` would wait in turn.
 */
async function holdLock(run: Run, { waitMs, onWait }: LockPatience): Promise<void> {
  const startedMs = performance.now();
  let toldMs = startedMs;
  for (;;) {
    const { rows } = await run<{ held: boolean }>(`select pg_try_advisory_lock(${advisoryLock}) as held`);
    if (rows[0]?.held === true) return;
    const [nowMs, isOver] = [performance.now(), performance.now() - startedMs > waitMs];
    if (isOver || nowMs - toldMs > lineEveryMs) {
      toldMs = nowMs;
      const line = `another process migrates this database: ${describeBlockers(await lockHolders(run))}`;
      if (isOver) throw new UnreachableError(`Not migrated: ${line}`);
      onWait(line);
    }
    await sleep(pollMs);
  }
}

async function lockHolders(run: Run): Promise<Blocker[]> {
  const { rows } = await run<Blocker>(
    `select a.pid, a.application_name as application, a.state, null as "transactionMs", null as "queryMs"
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.database = a.datid
       and l.classid::bigint << 32 | l.objid::bigint = ${advisoryLock}`,
  );
  return rows;
}
