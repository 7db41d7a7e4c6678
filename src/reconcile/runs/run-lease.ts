import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { TallyhookError, exitCodes } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { type NamedProcess, hasEnded, thisProcess } from "../../platform/process-table.ts";

/** The lease of the one run at work: a row of `reconcile.leases`. */
const leaseName = "reconciliation";

/** A pause of the process, or of the database, that is shorter than this costs a run nothing. */
const defaultLengthMs = 10_000;
/** The holder renews its lease so many times in its length. */
const renewals = 5;
/** How often a second process looks whether a holder that it cannot see is renewing. */
const pollMs = 500;
/** A process that is stopped within a transaction keeps the next one waiting for no longer than this. */
const idleInTransactionMs = 30_000;

/** The process that holds the lease, or held it last. Times are the database's. */
export interface LeaseHolder extends NamedProcess {
  since: Date;
  /** When the lease ends unless it is renewed; null once it was released. */
  until: Date | null;
  isOver: boolean;
}

/** What a run has while it holds the lease. */
export interface HeldLease {
  /** The database to write through (`fenced`). */
  db: Knex;
  /** Aborted when the lease is lost, with a `LeaseLostError`. */
  signal: AbortSignal;
}

/** Another process may be reconciling by now. Nothing was written since. */
export class LeaseLostError extends TallyhookError {
  override readonly exitCode = exitCodes.incomplete;
}

/**
 * Runs `work` unless another process is reconciling this database. A holder that is alive renews; one whose process has
 * ended on this machine is replaced at once, any other when its lease has ended. Keeps no session state and no
 * connection. When the lease is lost, the signal aborts, and `LeaseLostError` is thrown if `work` fails after that.
 */
export async function withRunLease<T>(
  { db, log }: { db: Knex; log: Log },
  work: (held: HeldLease) => Promise<T>,
  { signal, lengthMs = defaultLengthMs }: { signal?: AbortSignal; lengthMs?: number } = {},
): Promise<{ kind: "done"; value: T } | { kind: "busy"; holder: LeaseHolder }> {
  const acquired = await acquire(db, lengthMs, signal);
  if ("holder" in acquired) return { kind: "busy", ...acquired };
  const { token } = acquired;
  const lost = new AbortController();
  const renewing = keepRenewing({ db, log }, { token, lengthMs, lost });
  try {
    return {
      kind: "done",
      value: await work({ db: fenced(db, token, lost), signal: lost.signal }),
    };
  } catch (error) {
    // Whatever failed since failed because of it.
    throw lost.signal.aborted ? lost.signal.reason : error;
  } finally {
    await renewing.stop();
    if (!lost.signal.aborted) {
      await release(db, token).catch((err: unknown) => {
        log.warn({ err }, "the lease of the run could not be released: it ends by itself");
      });
    }
  }
}

/** The holder of the lease, or the last one; null before the first. One statement. */
export async function readRunLease(db: Knex): Promise<LeaseHolder | null> {
  const { token, ...holder } = await readRow(db);
  return token === 0 ? null : holder;
}

interface LeaseRow extends LeaseHolder {
  token: number;
}

async function readRow(db: Knex): Promise<LeaseRow> {
  const { rows } = await db.raw<{ rows: (Omit<LeaseRow, "token"> & { token: string })[] }>(
    `select token, host, pid, process as identity, acquired_at as since, expires_at as until,
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
 * Takes the lease, or names the process that has it. Whether a holder elsewhere is alive shows by its next renewal, so
 * that may take a moment.
 */
async function acquire(
  db: Knex,
  lengthMs: number,
  signal: AbortSignal | undefined,
): Promise<{ token: number } | { holder: LeaseHolder }> {
  let first: LeaseRow | undefined;
  let ended: number | null = null;
  // Twice the length: a transaction of a holder that has ended may take some time to end, too.
  for (let polls = Math.ceil((2 * lengthMs) / pollMs); ; polls--) {
    const token = await take(db, lengthMs, ended);
    if (token !== null) return { token };
    const holder = await readRow(db);
    first ??= holder;
    const isRenewed = holder.token !== first.token || !isSameTime(holder.until, first.until);
    const isEnded = hasEnded(holder);
    const isAlive = !holder.isOver && (isEnded === false || isRenewed);
    if (isAlive || polls === 0) return { holder };
    const isNews = isEnded === true && ended !== holder.token;
    ended = isEnded === true ? holder.token : null;
    if (!isNews) await sleep(pollMs, undefined, { signal });
  }
}

const isSameTime = (a: Date | null, b: Date | null): boolean => a?.getTime() === b?.getTime();

/**
 * Takes the lease if it has ended, or if its holder has (`ended` is that holder's token). Null otherwise, and while a
 * transaction of the last holder is still open. One statement.
 */
async function take(db: Knex, lengthMs: number, ended: number | null): Promise<number | null> {
  const { host, pid, identity } = thisProcess();
  const { rows } = await db.raw<{ rows: { token: string }[] }>(
    `with free as (
       select name from reconcile.leases
       where name = :leaseName and (
         expires_at is null or expires_at <= clock_timestamp() or token = cast(:ended as bigint))
       for update skip locked
     )
     update reconcile.leases l
     set token = l.token + 1, host = :host, pid = :pid, process = :identity, acquired_at = clock_timestamp(),
         expires_at = clock_timestamp() + make_interval(secs => :seconds)
     from free where l.name = free.name
     returning l.token`,
    { leaseName, host, pid, identity, ended, seconds: lengthMs / 1_000 } as Record<
      string,
      string | number
    >,
  );
  const [row] = rows;
  return row === undefined ? null : Number(row.token);
}

/** False where another process has taken the lease since. An ended lease that nobody took goes on. One statement. */
async function renew(db: Knex, token: number, lengthMs: number): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.leases set expires_at = clock_timestamp() + make_interval(secs => ?)
     where name = ? and token = ?`,
    [lengthMs / 1_000, leaseName, token],
  );
  return rowCount === 1;
}

async function release(db: Knex, token: number): Promise<void> {
  await db("reconcile.leases").where({ name: leaseName, token }).update({ expires_at: null });
}

interface Keeping {
  token: number;
  lengthMs: number;
  lost: AbortController;
}

/**
 * Renews the lease on a timer, until stopped. Gives it up where that fails for its length. Rounds of the timer are
 * counted, not time: to a process that was stopped itself, its next renewal says whether it was replaced.
 */
function keepRenewing(
  { db, log }: { db: Knex; log: Log },
  { token, lengthMs, lost }: Keeping,
): { stop(): Promise<void> } {
  let missed = 0;
  let current: Promise<void> | null = null;

  async function round(): Promise<void> {
    try {
      if (await renew(db, token, lengthMs)) missed = 0;
      else lost.abort(replaced(await readRow(db)));
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

const replaced = ({ pid, host, since }: LeaseHolder): LeaseLostError =>
  new LeaseLostError(
    `Process ${pid} on ${host} took over the reconciliation of this database at ${since.toISOString()}, since this process had ` +
      "not renewed its lease: it was paused, or did not reach the database. It has written nothing since, and nothing " +
      "is lost: the other process, or the same command, resumes the run.",
  );

/**
 * The database as the holder of a lease writes to it: each transaction first proves that the token is the current one,
 * and keeps it so until it ends. Once the lease is lost, transactions throw `LeaseLostError` before they write. A
 * transaction that asks for an isolation level is left as it is, since it only reads.
 */
function fenced(db: Knex, token: number, lost: AbortController): Knex {
  const transaction = <T>(
    work: (trx: Knex.Transaction) => Promise<T>,
    config?: Knex.TransactionConfig,
  ): Promise<T> =>
    config?.isolationLevel !== undefined
      ? db.transaction(work, config)
      : db.transaction(async (trx) => {
          await proveHeld(trx, token, lost);
          return work(trx);
        }, config);
  return new Proxy(db, {
    get: (target, property) =>
      property === "transaction" ? transaction : (Reflect.get(target, property) as unknown),
  });
}

async function proveHeld(trx: Knex.Transaction, token: number, lost: AbortController) {
  lost.signal.throwIfAborted();
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `select set_config('idle_in_transaction_session_timeout', ?, true) from reconcile.leases
     where name = ? and token = ? for key share`,
    [String(idleInTransactionMs), leaseName, token],
  );
  if (rows.length === 1) return;
  const error = replaced(await readRow(trx));
  lost.abort(error);
  throw error;
}
