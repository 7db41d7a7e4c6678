import type {
  MigrationStep,
  MigrationWatcher,
} from "../../../platform/postgres/migration-session.ts";
import type { Run } from "../../../platform/postgres/sql-file.ts";

/** A step of the migration as it ran on the copy. */
export interface RehearsedStep extends MigrationStep {
  /** An estimate for the real number of rows. */
  estimatedMs: number;
}

/** A lock that keeps others from a table that was there before. */
export interface HeldLock {
  table: string;
  /** True: it keeps readers out as well as writers. */
  stopsReaders: boolean;
  /** From the step that took it to the end of its transaction. */
  heldMs: number;
  estimatedMs: number;
  /** The file and the line that took it. */
  takenBy: string;
}

/** How many rows a table really has, and how many the copy has. */
export interface TableSize {
  real: number;
  copied: number;
}

export interface LockTimes extends MigrationWatcher {
  readonly steps: readonly RehearsedStep[];
  /** Of each transaction, the longest first. */
  locks(): HeldLock[];
}

interface OpenLock {
  key: string;
  lock: HeldLock;
}

/**
 * Times the steps of a migration and the locks that it holds. A step that reads or changes rows of a table is taken to
 * need as much longer as the table has more rows; one that changes definitions only takes as long anywhere. Make it
 * before the migration: a table that the migration makes keeps nobody out.
 */
export async function watchLockTimes(
  run: Run,
  sizes: ReadonlyMap<string, TableSize>,
): Promise<LockTimes> {
  const tables = await tablesNow(run);
  const steps: RehearsedStep[] = [];
  const released: HeldLock[] = [];
  let open: OpenLock[] = [];
  let before = new Map<string, number>();
  return {
    steps,
    locks: () => [...released].sort((a, b) => b.estimatedMs - a.estimatedMs || b.heldMs - a.heldMs),
    async ran(step, inside) {
      const rows = await rowsTouched(inside);
      const scale = scaleOf(tables, sizes, (id) => (rows.get(id) ?? 0) > (before.get(id) ?? 0));
      before = rows;
      // What an online step touched cannot be seen from outside of its transaction.
      const factor = step.isOnline
        ? scaleOf(tables, sizes, (id) => isNamed(step, tables.get(id)))
        : scale;
      const estimatedMs = step.ms * factor;
      steps.push({ ...step, estimatedMs });
      const takenBy = step.line === null ? step.file : `${step.file}, line ${step.line}`;
      const known = new Set(open.map(({ key }) => key));
      for (const { id, mode } of await heldLocks(inside)) {
        const table = tables.get(id);
        const key = `${id} ${mode}`;
        if (table === undefined || known.has(key)) continue;
        const stopsReaders = mode === "AccessExclusiveLock";
        open.push({ key, lock: { table, stopsReaders, heldMs: 0, estimatedMs: 0, takenBy } });
      }
      for (const { lock } of open) {
        lock.heldMs += step.ms;
        lock.estimatedMs += estimatedMs;
      }
    },
    released() {
      released.push(...open.map(({ lock }) => lock));
      open = [];
      before = new Map();
    },
  };
}

const isNamed = ({ statement }: MigrationStep, table: string | undefined): boolean =>
  table !== undefined && statement.includes(table);

/** By how much a step takes longer there: the greatest factor of the tables that it touches; 1 where it touches none. */
function scaleOf(
  tables: ReadonlyMap<string, string>,
  sizes: ReadonlyMap<string, TableSize>,
  isTouched: (id: string) => boolean,
): number {
  let scale = 1;
  for (const [id, table] of tables) {
    const size = sizes.get(table);
    if (size !== undefined && isTouched(id)) {
      scale = Math.max(scale, size.real / Math.max(1, size.copied));
    }
  }
  return scale;
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

/** Rows of each table that this transaction has read in scans, or changed. */
async function rowsTouched(run: Run): Promise<Map<string, number>> {
  const { rows } = await run<{ id: string; n: string }>(
    `select relid::text as id, seq_tup_read + n_tup_ins + n_tup_upd + n_tup_del as n
     from pg_stat_xact_user_tables`,
  );
  return new Map(rows.map(({ id, n }) => [id, Number(n)]));
}
