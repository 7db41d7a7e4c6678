import type { Knex } from "knex";
import { consumerOf } from "./feed-place.ts";
import { keepPosition } from "../feed/consumers.ts";
import { type Change, readChanges, readableUntil } from "../feed/changes.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";
import { sqlArray } from "../platform/postgres/values.ts";
import type { Handler } from "./define-handler.ts";

/** The first of its two numbers; the second is a hash of the handler's name. remove-runs.sql takes it shared. */
const planLock = 7_256;

/** Changes read at a time, and objects that may wait for their turn before no more changes are read. */
const [pageSize, mostFirst] = [500, 1_000];

/**
 * Makes a handler known that was not before, at the place where it begins. One that is known keeps its position,
 * whatever its definition says now. Idempotent.
 */
export async function registerHandler(
  db: Knex,
  { name, from }: Pick<Handler, "name" | "from">,
): Promise<void> {
  const known = await db("dispatch.handlers").where({ name }).first("name");
  if (known !== undefined) return;
  const position = from === "now" ? await readableUntil(db) : 0;
  const startsAt = from === "now" || from === "beginning" ? null : from;
  await inTransaction(db, async (trx) => {
    const { rowCount } = await trx.raw<{ rowCount: number }>(
      `insert into dispatch.handlers (name, position, starts_at) values (?, ?, ?) on conflict do nothing`,
      [name, position, startsAt],
    );
    if (rowCount > 0) await keepPosition(trx, { name: consumerOf(name), position });
  });
}

/**
 * Writes the runs of a handler for the next changes of the feed, and moves its position, in one transaction. One process
 * at a time does so for a handler; another one skips it. Reads no further while many objects wait, or while a person has
 * paused the handler. Returns whether it may be worthwhile to go on at once.
 */
export async function planRuns(db: Knex, handler: Handler): Promise<{ more: boolean }> {
  return inTransaction(db, async (trx) => {
    const row = await lockHandler(trx, handler.name);
    if (row === undefined) return { more: false };
    const after = Number(row.position);
    const { changes, position, hasMore } = await readChanges(trx, {
      after,
      limit: pageSize,
      kinds: handler.on,
    });
    if (position === after) return { more: false };
    const wanted = changes.filter((change) => isWanted(handler, row.starts_at, change));
    if (wanted.length > 0) await insertRuns(trx, handler.name, wanted);
    await trx("dispatch.handlers").where({ name: handler.name }).update({ position });
    await keepPosition(trx, { name: consumerOf(handler.name), position });
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
): Promise<PlannedHandler | undefined> {
  const { rows } = await trx.raw<{ rows: PlannedHandler[] }>(
    `select position, starts_at from dispatch.handlers
     where name = :name and paused_by is distinct from 'person' and (
       select count(*) from (
         select from dispatch.runs where handler = :name and is_first and state = 'waiting' limit :mostFirst
       ) as waiting) < :mostFirst
     for update skip locked`,
    { name, mostFirst },
  );
  return rows[0];
}

/** Pure. */
const isWanted = (
  { includeImport }: Pick<Handler, "includeImport">,
  startsAt: Date | null,
  { cause, recordedAt }: Change,
): boolean =>
  (includeImport || cause !== "import") && (startsAt === null || recordedAt >= startsAt);

/** Until the end of the transaction, nobody else plans or removes runs of the handler. */
export async function lockPlanning(trx: Knex.Transaction, handler: string): Promise<void> {
  await trx.raw("select pg_advisory_xact_lock(?, hashtext(?))", [planLock, handler]);
}

/**
 * The lock keeps runs from being removed meanwhile, and what is planned here from being missed by who removes the run
 * before it (remove-runs.sql).
 */
async function insertRuns(
  trx: Knex.Transaction,
  handler: string,
  changes: readonly Change[],
): Promise<void> {
  await lockPlanning(trx, handler);
  await trx.raw(
    `insert into dispatch.runs (handler, seq, resource, id, kind, change, is_first)
     select :handler, g.seq, g.resource, g.id, g.kind, g.change,
            row_number() over (partition by g.resource, g.id order by g.seq) = 1 and not exists (
              select from dispatch.runs r where r.handler = :handler and r.resource = g.resource and r.id = g.id)
     from unnest(:seqs::bigint[], :resources::text[], :ids::text[], :kinds::text[], :changes::jsonb[])
       as g(seq, resource, id, kind, change)
     order by g.seq
     on conflict do nothing`,
    {
      handler,
      seqs: sqlArray(changes.map(({ seq }) => seq)),
      resources: sqlArray(changes.map(({ resource }) => resource)),
      ids: sqlArray(changes.map(({ id }) => id)),
      kinds: sqlArray(changes.map(({ kind }) => kind)),
      changes: sqlArray(changes.map((change) => JSON.stringify(change))),
    },
  );
}
