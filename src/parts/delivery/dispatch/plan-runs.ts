import type { Knex } from "knex";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { type TransactionLimits, inTransaction, settingLimits } from "../../../platform/postgres/transactions.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import type { Recipient, Source, SourceRow } from "./recipient.ts";

/** The first of its two numbers; the second is a hash of the recipient's name. remove-runs.sql takes it shared. */
const planLock = 7_256;

/** Rows read at a time, and objects that may be due before no more rows are read. Those that are put off do not count. */
const [pageSize, mostFirst] = [500, 1_000];

/**
 * Registers a new recipient at its start: `now` is the position for "now", or null for the source's present end. A
 * known one keeps its position, even if its definition changed. Idempotent.
 */
export async function registerRecipient(
  db: Knex,
  { name, from }: Pick<Recipient, "name" | "from">,
  source: Source,
  now: number | null = null,
): Promise<void> {
  const known = await db("dispatch.handlers").where({ name }).first("name");
  if (known !== undefined) return;
  const startsAt = from === "now" || from === "beginning" ? null : new Date(from);
  const position =
    startsAt === null
      ? from === "now"
        ? (now ?? (await source.readableUntil(db)))
        : 0
      : await source.positionAt(db, startsAt);
  await inTransaction(db, async (trx) => {
    const { rowCount } = await trx.raw<{ rowCount: number }>(
      `insert into dispatch.handlers (name, source, position, starts_at) values (?, ?, ?, ?)
       on conflict do nothing`,
      [name, source.name, position, startsAt as never],
    );
    if (rowCount > 0) await source.keepPosition?.(trx, position);
  });
}

/**
 * Writes the runs of a recipient for the next rows of its source, and moves its position, in one transaction. One
 * process at a time does so for a recipient; another one skips it. Reads no further while many objects are due, or
 * while a person has paused the recipient. Returns whether an immediate repeat may find more.
 */
export async function planRuns(
  db: Knex,
  name: string,
  source: Source,
  limits: TransactionLimits = planLimits,
): Promise<{ more: boolean }> {
  try {
    return await planLocked(db, name, source, limits);
  } catch (error) {
    if (errorCode(error) === lockNotAvailable) return { more: false };
    throw error;
  }
}

const lockNotAvailable = "55P03";

/**
 * A process that removes runs holds the lock for an instant, and if it is stopped in between it may hold up only one
 * recipient. A process that is stopped while it plans loses its turn to others after the transaction's limit.
 */
const planLimits: TransactionLimits = { statementMs: 20_000, lockMs: 250, transactionMs: 30_000 };

function planLocked(db: Knex, name: string, source: Source, limits: TransactionLimits): Promise<{ more: boolean }> {
  return inTransaction(db, async (trx) => {
    const known = await lockHandler(trx, name, limits);
    if (known === undefined) return { more: false };
    const after = Number(known.position);
    const page = { after, limit: pageSize, startsAt: known.starts_at };
    const { rows, position, hasMore } = await source.read(trx, page);
    if (position === after) return { more: false };
    if (rows.length > 0) await insertRuns(trx, name, rows);
    await trx("dispatch.handlers").where({ name }).update({ position });
    await source.keepPosition?.(trx, position);
    return { more: hasMore };
  });
}

interface PlannedHandler {
  position: string;
  starts_at: Date | null;
}

async function lockHandler(
  trx: Knex.Transaction,
  name: string,
  limits: TransactionLimits,
): Promise<PlannedHandler | undefined> {
  const { rows } = await trx.raw<{ rows: PlannedHandler[] }>(
    `select position, starts_at, ${settingLimits} from dispatch.handlers
     where name = :name and paused_by is distinct from 'person' and (
       select count(*) from (
         select from dispatch.runs
         where handler = :name and is_first and state = 'waiting' and due_at <= now() limit :mostFirst
       ) as waiting) < :mostFirst
     for update skip locked`,
    { name, mostFirst, ...limits },
  );
  return rows[0];
}

/** Until the transaction ends, no other process plans or removes runs of the recipient. */
export async function lockPlanning(trx: Knex.Transaction, name: string): Promise<void> {
  await trx.raw("select pg_advisory_xact_lock(?, hashtext(?))", [planLock, name]);
}

/**
 * The lock prevents the removal of runs during planning, and makes new runs visible to the transaction that removes the
 * run before them (remove-runs.sql).
 */
async function insertRuns(trx: Knex.Transaction, handler: string, rows: readonly SourceRow[]): Promise<void> {
  await lockPlanning(trx, handler);
  await trx.raw(
    `insert into dispatch.runs (handler, seq, resource, id, kind, change, is_first)
     select :handler, g.seq, g.resource, g.id, g.kind, g.item,
            row_number() over (partition by g.resource, g.id order by g.seq) = 1 and not exists (
              select from dispatch.runs r where r.handler = :handler and r.resource = g.resource and r.id = g.id)
     from unnest(:seqs::bigint[], :resources::text[], :ids::text[], :kinds::text[], :items::jsonb[])
       as g(seq, resource, id, kind, item)
     order by g.seq
     on conflict do nothing`,
    {
      handler,
      seqs: sqlArray(rows.map(({ seq }) => seq)),
      resources: sqlArray(rows.map(({ resource }) => resource)),
      ids: sqlArray(rows.map(({ id }) => id)),
      kinds: sqlArray(rows.map(({ kind }) => kind)),
      items: sqlArray(rows.map(({ item }) => JSON.stringify(item))),
    },
  );
}
