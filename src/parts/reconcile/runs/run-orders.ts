import type { Knex } from "knex";
import { thisProcess } from "../../../platform/process-table.ts";
import type { RunKind } from "./runs.ts";

/** A run that a person ordered. Times are the database's. */
export interface RunOrder {
  id: number;
  /** Key of the order's run: it keeps an order to one run with any number of workers. */
  runKey: string;
  kind: OrderedKind;
  rangeFrom: Date | null;
  rangeTo: Date | null;
  reportOnly: boolean;
  orderedBy: string;
  orderedAt: Date;
  /** Null while it is open. */
  endedAt: Date | null;
  outcome: OrderOutcome | null;
  /** The reason for its failure. */
  error: string | null;
}

export const orderedKinds = ["nightly", "full", "range"] as const satisfies readonly RunKind[];
export type OrderedKind = (typeof orderedKinds)[number];
export type OrderOutcome = "done" | "failed" | "withdrawn";

export type NewOrder = Pick<RunOrder, "kind" | "rangeFrom" | "rangeTo" | "reportOnly" | "orderedBy">;

/** Orders a run, which a worker begins within seconds. Null where another order is open. One statement. */
export async function orderRun(db: Knex, order: NewOrder): Promise<RunOrder | null> {
  const [row] = await db("reconcile.run_orders")
    .insert({
      run_key: `ordered:${crypto.randomUUID()}`,
      kind: order.kind,
      range_from: order.rangeFrom,
      range_to: order.rangeTo,
      report_only: order.reportOnly,
      ordered_by: order.orderedBy,
    })
    .onConflict(db.raw("((true)) where ended_at is null"))
    .ignore()
    .returning<OrderRow[]>("*");
  return row === undefined ? null : toOrder(row);
}

/** The pending order; null where there is none. One statement. */
export async function openOrder(db: Knex): Promise<RunOrder | null> {
  const row = await db("reconcile.run_orders").whereNull("ended_at").first<OrderRow | undefined>();
  return row === undefined ? null : toOrder(row);
}

/** The order that was given last; null before the first. One statement. */
export async function lastOrder(db: Knex): Promise<RunOrder | null> {
  const row = await db("reconcile.run_orders").orderBy("id", "desc").first<OrderRow | undefined>();
  return row === undefined ? null : toOrder(row);
}

/** Ends an open order. False where it has ended already. One statement, idempotent. */
export async function endOrder(
  db: Knex,
  id: number,
  { outcome, error = null }: { outcome: OrderOutcome; error?: string | null },
): Promise<boolean> {
  const ended = await db("reconcile.run_orders")
    .where({ id })
    .whereNull("ended_at")
    .update({ outcome, error, ended_at: db.raw("clock_timestamp()") });
  return ended > 0;
}

/**
 * Whether an order may still be begun. Call it in the transaction that opens its run: until that ends, the order cannot
 * be withdrawn.
 */
export async function takeOrder(trx: Knex.Transaction, id: number): Promise<boolean> {
  const open = await trx("reconcile.run_orders").where({ id }).whereNull("ended_at").forUpdate().first("id");
  return open !== undefined;
}

/** The outcome of a withdrawal. */
export type Withdrawal =
  | { outcome: "withdrawn" }
  /** A worker was faster. */
  | { outcome: "begun"; run: number }
  | { outcome: "ended"; as: OrderOutcome };

/** Withdraws an order, unless a run has begun for it. Null where there is no such order. Needs a transaction. */
export async function withdrawOrder(trx: Knex.Transaction, id: number): Promise<Withdrawal | null> {
  // The process that opens the run holds this lock (`takeOrder`), so the next statement sees a run that was being
  // opened.
  const order = await trx("reconcile.run_orders")
    .where({ id })
    .forUpdate()
    .first<Pick<OrderRow, "run_key" | "outcome"> | undefined>("run_key", "outcome");
  if (order === undefined) return null;
  if (order.outcome !== null) return { outcome: "ended", as: order.outcome };
  const run = await trx("reconcile.runs").where({ run_key: order.run_key }).first<{ id: string } | undefined>("id");
  if (run !== undefined) return { outcome: "begun", run: Number(run.id) };
  await endOrder(trx, id, { outcome: "withdrawn" });
  return { outcome: "withdrawn" };
}

/** Interval of a worker's heartbeats, and how long one counts. */
export const beatEveryMs = 15_000;
const aliveForMs = 4 * beatEveryMs;

/** Records that this process takes orders, and forgets processes that ended silently. One statement. */
export async function beat(db: Knex): Promise<void> {
  const { host, pid } = thisProcess();
  await db.raw(
    `with gone as (
       delete from reconcile.order_takers
       where seen_at < clock_timestamp() - interval '1 day' and (host, pid) <> (:host, :pid)
     )
     insert into reconcile.order_takers (host, pid) values (:host, :pid)
     on conflict (host, pid) do update set seen_at = clock_timestamp()`,
    { host, pid },
  );
}

/** Records that this process takes no more orders. */
export async function leave(db: Knex): Promise<void> {
  const { host, pid } = thisProcess();
  await db("reconcile.order_takers").where({ host, pid }).delete();
}

export interface OrderTakers {
  /** Number of workers that take orders. */
  alive: number;
  /** The last heartbeat of any; null: there has been none. */
  lastSeenAt: Date | null;
}

/** Whether a worker that takes orders is running. One statement. */
export async function orderTakers(db: Knex): Promise<OrderTakers> {
  const { rows } = await db.raw<{ rows: { alive: number; last: Date | null }[] }>(
    `select max(seen_at) as last,
            cast(count(*) filter (where seen_at > clock_timestamp() - make_interval(secs => ?)) as integer) as alive
     from reconcile.order_takers`,
    [aliveForMs / 1_000],
  );
  return { alive: rows[0]?.alive ?? 0, lastSeenAt: rows[0]?.last ?? null };
}

interface OrderRow {
  id: string;
  run_key: string;
  kind: OrderedKind;
  range_from: Date | null;
  range_to: Date | null;
  report_only: boolean;
  ordered_by: string;
  ordered_at: Date;
  ended_at: Date | null;
  outcome: OrderOutcome | null;
  error: string | null;
}

const toOrder = (row: OrderRow): RunOrder => ({
  id: Number(row.id),
  runKey: row.run_key,
  kind: row.kind,
  rangeFrom: row.range_from,
  rangeTo: row.range_to,
  reportOnly: row.report_only,
  orderedBy: row.ordered_by,
  orderedAt: row.ordered_at,
  endedAt: row.ended_at,
  outcome: row.outcome,
  error: row.error,
});
