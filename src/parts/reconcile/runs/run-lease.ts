import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { TallyhookError, exitCodes } from "../../../platform/errors.ts";
import type { Log } from "../../../platform/log.ts";
import { type NamedProcess, hasEnded, thisProcess } from "../../../platform/process-table.ts";

/** The lease of the one run at work: a row of `reconcile.leases`. */
const leaseName = "reconciliation";

/** A run survives a pause of the process, or of the database, that is shorter than this. */
const defaultLengthMs = 10_000;
/** The holder renews its lease so many times in its length. */
const renewals = 5;
/** Interval at which a second process checks whether an invisible holder is renewing. */
const pollMs = 500;
/** A process that is stopped within a transaction keeps the next one waiting for no longer than this. */
const defaultIdleMs = 30_000;

/** The process that holds the lease, or held it last. Times are the database's. */
export interface LeaseHolder extends NamedProcess {
  since: Date;
  /** When the lease ends unless it is renewed; null once it was released. */
  until: Date | null;
  isOver: boolean;
}

/** A run's access to the lease it holds. */
export interface HeldLease {
  /** The database to write through (`fenced`). */
  db: Knex;
  /** Aborted when the lease is lost, with a `LeaseLostError`. */
  signal: AbortSignal;
}

/** Another process may be reconciling. No write followed the loss. */
export class LeaseLostError extends TallyhookError {
  override readonly exitCode = exitCodes.incomplete;
}

export interface LeaseOptions {
  signal?: AbortSignal;
  lengthMs?: number;
  /** The longest pause within a transaction of the holder. */
  idleMs?: number;
}

/**
 * Runs `work` unless another process is reconciling this database. A holder that is alive renews; one whose process has
 * ended on this machine is replaced immediately, any other when its lease has ended. Keeps no session state and no
 * connection. When the lease is lost, the signal aborts, and `LeaseLostError` is thrown if `work` fails after that.
 */
export async function withRunLease<T>(
  { db, log }: { db: Knex; log: Log },
  work: (held: HeldLease) => Promise<T>,
  { signal, lengthMs = defaultLengthMs, idleMs = defaultIdleMs }: LeaseOptions = {},
): Promise<{ kind: "done"; value: T } | { kind: "busy"; holder: LeaseHolder }> {
  const acquired = await acquire(db, lengthMs, signal);
  if ("holder" in acquired) return { kind: "busy", ...acquired };
  const { held } = acquired;
  const lost = new AbortController();
  const renewing = keepRenewing({ db, log }, { held, lengthMs, lost });
  try {
    return {
      kind: "done",
      value: await work({ db: fenced(db, held, { lost, idleMs }), signal: lost.signal }),
    };
  } catch (error) {
    // Every later failure is a consequence of the loss.
    throw lost.signal.aborted ? lost.signal.reason : error;
  } finally {
    await renewing.stop();
    if (!lost.signal.aborted) {
      await release(db, held).catch((err: unknown) => {
        log.warn({ err }, "the lease of the run could not be released: it ends by itself");
      });
    }
  }
}

/** The holder of the lease, or the last one; null before the first. One statement. */
export async function readRunLease(db: Knex): Promise<LeaseHolder | null> {
  const { token, acquired: _, ...holder } = await readRow(db);
  return token === 0 ? null : holder;
}

/**
 * Identifies one holding of the lease. The token alone does not: a standby that is promoted may lack the last lease,
 * and its database gives the same token once more.
 */
interface Holding {
  token: number;
  /** When it was taken, in seconds as PostgreSQL writes them: a `Date` would lose the microseconds. */
  acquired: string | null;
}

const isHolding = "name = :leaseName and token = :token and extract(epoch from acquired_at) = :acquired::numeric";

const holdingBindings = ({ token, acquired }: Holding) =>
  ({ leaseName, token, acquired }) as Record<string, string | number>;

interface LeaseRow extends LeaseHolder, Holding {}

async function readRow(db: Knex): Promise<LeaseRow> {
  const { rows } = await db.raw<{ rows: (Omit<LeaseRow, "token"> & { token: string })[] }>(
    `select token, extract(epoch from acquired_at)::text as acquired, host, pid, process as identity,
            acquired_at as since, expires_at as until,
            expires_at is null or expires_at <= clock_timestamp() as "isOver"
     from reconcile.leases where name = ?`,
    [leaseName],
  );
  const [row] = rows;
  if (row === undefined) {
    throw new TallyhookError(
      `The table reconcile.leases has no row "${leaseName}", without which no run can start. Add it: ` +
        `insert into reconcile.leases (name) values ('${leaseName}')`,
    );
  }
  return { ...row, token: Number(row.token) };
}

/**
 * Takes the lease, or names the process that has it. A holder elsewhere proves to be alive by its next renewal, so this
 * may take some seconds.
 */
async function acquire(
  db: Knex,
  lengthMs: number,
  signal: AbortSignal | undefined,
): Promise<{ held: Holding } | { holder: LeaseHolder }> {
  let first: LeaseRow | undefined;
  let ended: Holding | null = null;
  // Twice the length: a transaction of a holder that has ended may take some time to end, too.
  for (let polls = Math.ceil((2 * lengthMs) / pollMs); ; polls--) {
    const held = await take(db, lengthMs, ended);
    if (held !== null) return { held };
    const holder = await readRow(db);
    first ??= holder;
    const isRenewed = !isSameHolding(holder, first) || !isSameTime(holder.until, first.until);
    const isEnded = hasEnded(holder);
    const isAlive = !holder.isOver && (isEnded === false || isRenewed);
    if (isAlive || polls === 0) return { holder };
    const isNews = isEnded === true && (ended === null || !isSameHolding(ended, holder));
    ended = isEnded === true ? holder : null;
    if (!isNews) await sleep(pollMs, undefined, { signal });
  }
}

const isSameHolding = (a: Holding, b: Holding): boolean => a.token === b.token && a.acquired === b.acquired;

const isSameTime = (a: Date | null, b: Date | null): boolean => a?.getTime() === b?.getTime();

/**
 * Takes the lease if it has ended, or if its holder has (`ended`). Null otherwise, and while a
 * transaction of the last holder is still open. One statement.
 */
async function take(db: Knex, lengthMs: number, ended: Holding | null): Promise<Holding | null> {
  const { host, pid, identity } = thisProcess();
  const { rows } = await db.raw<{ rows: { token: string; acquired: string }[] }>(
    `with free as (
       select name from reconcile.leases
       where name = :leaseName and (
         expires_at is null or expires_at <= clock_timestamp() or (${isHolding}))
       for update skip locked
     )
     update reconcile.leases l
     set token = l.token + 1, host = :host, pid = :pid, process = :identity, acquired_at = clock_timestamp(),
         expires_at = clock_timestamp() + make_interval(secs => :seconds)
     from free where l.name = free.name
     returning l.token, extract(epoch from l.acquired_at)::text as acquired`,
    {
      ...holdingBindings(ended ?? { token: 0, acquired: null }),
      host,
      pid,
      identity,
      seconds: lengthMs / 1_000,
    } as Record<string, string | number>,
  );
  const [row] = rows;
  return row === undefined ? null : { ...row, token: Number(row.token) };
}

/**
 * False where another process has taken the lease since. An expired lease that no other process took continues. One
 * statement.
 */
async function renew(db: Knex, held: Holding, lengthMs: number): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.leases set expires_at = clock_timestamp() + make_interval(secs => :seconds) where ${isHolding}`,
    { ...holdingBindings(held), seconds: lengthMs / 1_000 },
  );
  return rowCount === 1;
}

async function release(db: Knex, held: Holding): Promise<void> {
  await db.raw(`update reconcile.leases set expires_at = null where ${isHolding}`, holdingBindings(held));
}

interface Keeping {
  held: Holding;
  lengthMs: number;
  lost: AbortController;
}

/**
 * Renews the lease on a timer, until stopped. Gives it up where that fails for its length. Rounds of the timer are
 * counted, not time: a process that was itself stopped finds out by its next renewal whether it was replaced.
 */
function keepRenewing(
  { db, log }: { db: Knex; log: Log },
  { held, lengthMs, lost }: Keeping,
): { stop(): Promise<void> } {
  let missed = 0;
  let current: Promise<void> | null = null;

  async function round(): Promise<void> {
    try {
      if (await renew(db, held, lengthMs)) missed = 0;
      else lost.abort(whyLost(held, await readRow(db)));
    } catch (err) {
      log.warn({ err }, "the lease of the run could not be renewed; it is tried again");
    }
    current = null;
  }

  const timer = setInterval(() => {
    if (lost.signal.aborted) return;
    missed += 1;
    if (missed >= renewals) lost.abort(unreachable(lengthMs));
    else current ??= round();
  }, lengthMs / renewals);
  return {
    async stop() {
      clearInterval(timer);
      await current;
    },
  };
}

const unreachable = (lengthMs: number): LeaseLostError =>
  new LeaseLostError(
    `The database did not answer for ${lengthMs / 1_000} s, so this process gave up its lease and stopped: another one ` +
      "may reconcile by now. Nothing is lost: the same command resumes the run.",
  );

/** Another process has taken the lease since, or the database has lost it. */
const whyLost = (held: Holding, row: LeaseRow): LeaseLostError =>
  row.token < held.token ? forgotten() : replaced(row);

const forgotten = (): LeaseLostError =>
  new LeaseLostError(
    "The database has lost the lease of this process: a standby was promoted that lacked the last changes, or a backup " +
      "was restored. It has written nothing since. What it wrote shortly before may be lost with the lease: the same " +
      "command resumes the run from what the database has.",
  );

const replaced = ({ pid, host, since }: LeaseHolder): LeaseLostError =>
  new LeaseLostError(
    `Process ${pid} on ${host} took over the reconciliation of this database at ${since.toISOString()}, since this process had ` +
      "not renewed its lease: it was paused, or did not reach the database. It has written nothing since, and nothing " +
      "is lost: the other process, or the same command, resumes the run.",
  );

type Fence = Required<Pick<LeaseOptions, "idleMs">> & { lost: AbortController };

/**
 * The database as the holder of a lease writes to it: each transaction first proves that its holding is the current
 * one, and keeps it so until it ends. Once the lease is lost, transactions throw `LeaseLostError` before they write. A
 * transaction that asks for an isolation level is left as it is, since it only reads.
 */
function fenced(db: Knex, held: Holding, fence: Fence): Knex {
  const transaction = <T>(work: (trx: Knex.Transaction) => Promise<T>, config?: Knex.TransactionConfig): Promise<T> =>
    config?.isolationLevel !== undefined
      ? db.transaction(work, config)
      : db.transaction(async (trx) => {
          await proveHeld(trx, held, fence);
          return work(trx);
        }, config);
  return new Proxy(db, {
    get: (target, property) => (property === "transaction" ? transaction : (Reflect.get(target, property) as unknown)),
  });
}

async function proveHeld(trx: Knex.Transaction, held: Holding, { lost, idleMs }: Fence) {
  lost.signal.throwIfAborted();
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `select set_config('idle_in_transaction_session_timeout', :idleMs, true) from reconcile.leases
     where ${isHolding} for key share`,
    { ...holdingBindings(held), idleMs: String(idleMs) },
  );
  if (rows.length === 1) return;
  const error = whyLost(held, await readRow(trx));
  lost.abort(error);
  throw error;
}
