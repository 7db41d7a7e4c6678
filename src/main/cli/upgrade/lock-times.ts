import type { MigrationStep, MigrationWatcher } from "../../../platform/postgres/migration-session.ts";
import type { Run } from "../../../platform/postgres/sql-file.ts";

/** A lock that keeps others from a table that was there before. */
export interface HeldLock {
  table: string;
  /** True: it keeps readers out as well as writers. */
  stopsReaders: boolean;
  /** From the step that took it to the end of its transaction. */
  heldMs: number;
  /** The file and the line that took it. */
  takenBy: string;
}

export interface LockTimes extends MigrationWatcher {
  readonly steps: readonly MigrationStep[];
  /** Locks of each transaction, the longest first. */
  locks(): HeldLock[];
}

interface OpenLock {
  key: string;
  lock: HeldLock;
}

/**
 * Times the steps of a migration and the locks that it holds. Make it before the migration: a table that the migration
 * makes blocks no session.
 */
export async function watchLockTimes(run: Run): Promise<LockTimes> {
  const tables = await tablesNow(run);
  const steps: MigrationStep[] = [];
  const released: HeldLock[] = [];
  let open: OpenLock[] = [];
  return {
    steps,
    locks: () => [...released].sort((a, b) => b.heldMs - a.heldMs),
    async ran(step, inside) {
      steps.push(step);
      const takenBy = step.line === null ? step.file : `${step.file}, line ${step.line}`;
      const known = new Set(open.map(({ key }) => key));
      for (const { id, mode } of await heldLocks(inside)) {
        const table = tables.get(id);
        const key = `${id} ${mode}`;
        if (table === undefined || known.has(key)) continue;
        const stopsReaders = mode === "AccessExclusiveLock";
        open.push({ key, lock: { table, stopsReaders, heldMs: 0, takenBy } });
      }
      for (const { lock } of open) lock.heldMs += step.ms;
    },
    released() {
      released.push(...open.map(({ lock }) => lock));
      open = [];
    },
  };
}

/** Names by id: a migration may rename them. */
async function tablesNow(run: Run): Promise<ReadonlyMap<string, string>> {
  const { rows } = await run<{ id: string; name: string }>(
    `select c.oid::text as id, n.nspname || '.' || c.relname as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and n.nspname !~ '^(pg_|information_schema$)'
       and c.relname !~ '^tallyhook_'`,
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** Locks of this session on tables that stop at least writers. */
async function heldLocks(run: Run): Promise<{ id: string; mode: string }[]> {
  const { rows } = await run<{ id: string; mode: string }>(
    `select relation::text as id, mode from pg_locks
     where pid = pg_backend_pid() and locktype = 'relation' and granted
       and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
     order by 1, 2`,
  );
  return rows;
}
