import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { deriveChargebacks, deriveOrderlessChargebacks, touchedOrders } from "./chargeback.ts";
import { customerTable, decodeCustomer } from "./customer.ts";
import { findTies, recordStates, stateKey } from "./history.ts";
import { decodeOrder, orderTable } from "./order.ts";
import type { Decoded, GroupState, Observation, Resource } from "./observation.ts";
import { decodeSubscription, subscriptionTable } from "./subscription.ts";
import type { MirrorTable } from "./table.ts";
import { decodeTransaction, transactionTable } from "./transaction.ts";
import { upsertStatement } from "./upsert-statement.ts";

/** What became of one observation. */
export type Outcome =
  | { outcome: "applied" | "stale"; id: string }
  | { outcome: "thin"; id: string }
  | { outcome: "unreadable"; reason: string };

/** An object whose last state events alone cannot tell. */
export interface TiedObject {
  resource: Resource;
  id: string;
  updatedAt: string;
}

export interface Applied {
  /** One for each observation, in their order. */
  outcomes: Outcome[];
  ties: TiedObject[];
}

const decoders: Readonly<Record<Resource, (observation: Observation) => Decoded>> = {
  order: decodeOrder,
  transaction: decodeTransaction,
  subscription: decodeSubscription,
  customer: decodeCustomer,
};

/** Always in this order, so that two batches cannot wait for each other. */
const tables = [orderTable, transactionTable, subscriptionTable, customerTable].map((table) => ({
  table,
  statement: upsertStatement(table),
}));

/** Reads one observation without applying it. Pure. */
export const decode = (observation: Observation): Decoded =>
  decoders[observation.resource](observation);

/**
 * The one writer of the mirror. Brings the rows up to the newest of their known states and these, keeps every
 * state in the history and derives the chargebacks: one statement a table, whatever the number of observations.
 * Commutative and idempotent. Needs a transaction; may fail with 40P01 or 40001, then the whole may be repeated.
 */
export async function applyObservations(
  trx: Knex.Transaction,
  observations: readonly Observation[],
): Promise<Applied> {
  const decoded = observations.map(decode);
  const states = decoded.flatMap((d) => (d.ok ? d.states : []));
  const { recorded, applied } = await applyStates(trx, states);
  const outcomes = decoded.map((d): Outcome => {
    if (!d.ok) return d.thin ? { outcome: "thin", id: d.id } : { outcome: "unreadable", reason: d.reason };
    const isApplied = d.states.some(
      (state) => applied.has(state) && (recorded.has(stateKey(state)) || state.observedAt !== null),
    );
    return { outcome: isApplied ? "applied" : "stale", id: d.id };
  });
  return { outcomes, ties: await tiedObjects(trx, states, recorded) };
}

/** Applies states that were decoded, or made (an absence), already. Needs a transaction. */
export async function applyStates(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<{ recorded: Set<string>; applied: Set<GroupState> }> {
  const applied = new Set<GroupState>();
  if (states.length === 0) return { recorded: new Set(), applied };
  const recorded = await recordStates(trx, states);
  const winners = winnersOf(states);
  const touched = touchedOrders(states);
  await lockOrders(trx, touched.map(({ orderId }) => orderId));
  for (const { table, statement } of tables) {
    const rows = rowsOf(table, winners);
    if (rows.size === 0) continue;
    const sorted = [...rows.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
    const { rows: changed } = await trx.raw<{ rows: Record<string, string>[] }>(statement, [
      JSON.stringify(sorted.map(({ values }) => values)),
    ]);
    for (const row of changed) {
      for (const { column, state } of rows.get(row["id"] ?? "")?.states ?? []) {
        if (row[column] === state.version) applied.add(state);
      }
    }
  }
  await deriveChargebacks(trx, touched);
  await deriveOrderlessChargebacks(trx, states);
  return { recorded, applied };
}

/** Of the states of one group and object in this batch, the highest. */
function winnersOf(states: readonly GroupState[]): Map<string, GroupState> {
  const winners = new Map<string, GroupState>();
  for (const state of states) {
    const key = `${state.group}|${state.id}`;
    const best = winners.get(key);
    if (best === undefined || state.version > best.version) winners.set(key, state);
  }
  return winners;
}

interface TableRow {
  values: Record<string, unknown>;
  states: { column: string; state: GroupState }[];
}

/** The rows that a batch brings to a table: for each object the winners of its groups side by side. */
function rowsOf(table: MirrorTable, winners: ReadonlyMap<string, GroupState>): Map<string, TableRow> {
  const rows = new Map<string, TableRow>();
  const [coreGroup] = Object.keys(table.groups);
  const noVersions = Object.fromEntries(
    Object.values(table.groups).map(({ versionColumn }) => [versionColumn, ""]),
  );
  for (const state of winners.values()) {
    const definition = table.groups[state.group];
    if (definition === undefined) continue;
    const row = rows.get(state.id) ?? {
      values: { id: state.id, seen_until: "", ...noVersions },
      states: [],
    };
    const isCore = state.group === coreGroup;
    // What the core shares with another group is the core's wherever both are there.
    row.values = isCore
      ? { ...row.values, ...state.columns, last_cause: state.cause }
      : { last_cause: state.cause, ...state.columns, ...row.values };
    row.values[definition.versionColumn] = state.version;
    row.states.push({ column: definition.versionColumn, state });
    rows.set(state.id, row);
  }
  return rows;
}

/**
 * The states of a sale and those of its order derive one chargeback together: whoever brings either holds the
 * order's row first, so that neither overlooks the other.
 */
async function lockOrders(trx: Knex.Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await trx.raw(`select 1 from mirror.orders where id = any(?::text[]) order by id for update`, [
    sqlArray(ids),
  ]);
}

/** Which read settles a tie in a group; event-only groups are shown by no read. */
const settledBy: Readonly<Record<string, Resource>> = {
  order: "order",
  "order.items": "order",
  "transaction.inline": "order",
  transaction: "transaction",
  subscription: "subscription",
  "subscription.detail": "subscription",
  customer: "customer",
};

async function tiedObjects(
  trx: Knex.Transaction,
  states: readonly GroupState[],
  recorded: ReadonlySet<string>,
): Promise<TiedObject[]> {
  const candidates = states.filter(
    (state) =>
      state.observedAt === null &&
      settledBy[state.group] !== undefined &&
      recorded.has(stateKey(state)),
  );
  return (await findTies(trx, candidates)).flatMap(({ group, id, updatedAt, content }) => {
    const resource = settledBy[group];
    if (resource === undefined) return [];
    const orderId = content["order_id"];
    const isInline = group === "transaction.inline" && typeof orderId === "string";
    return [{ resource, id: isInline ? orderId : id, updatedAt }];
  });
}
