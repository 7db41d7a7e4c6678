import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { Resource } from "../snapshot.ts";
import type { WriteResult, WrittenRow } from "../write/write-rows.ts";
import { type Fact, factsOf, isShownBefore, kindsOf } from "./kinds.ts";

/** What was written of one resource. */
export interface Written extends WriteResult {
  resource: Resource;
}

interface Change {
  resource: Resource;
  id: string;
  kind: string;
  cause: string;
  /** The object's row as it was written; null if it was not. */
  row: WrittenRow | null;
  fact: ShownFact | null;
  isSuperseded: boolean;
}

/** A fact, and the row of the state that showed it; null if the state came late and changed no row. */
interface ShownFact extends Fact {
  cause: string;
  shownBy: WrittenRow | null;
}

/**
 * Adds to the feed what a transaction wrote: at least one change for each row that shows a new state. Refunds and
 * disputes are told once for ever, also where a state that came late shows them (`is_superseded`). Two statements at
 * most. Must follow the write of the rows, whose locks put the changes of one object in the order of their numbers.
 * Needs the transaction that wrote them.
 */
export async function recordChanges(
  trx: Knex.Transaction,
  written: readonly Written[],
): Promise<void> {
  const rows = new Map<string, WrittenRow>();
  for (const { resource, rows: own } of written) {
    for (const row of own) rows.set(keyOf(resource, row.id), row);
  }
  const facts = await newFacts(trx, shownFacts(written, rows));
  const changes: Change[] = [];
  // A fact that came late does not say that the row has changed.
  const told = new Set(
    facts.flatMap(({ resource, id, shownBy }) => (shownBy === null ? [] : [keyOf(resource, id)])),
  );
  for (const { resource, rows: own } of written) {
    for (const row of own) {
      const kinds = kindsOf(resource, row);
      const isUpdated = kinds.length === 0 && row.isChanged && !told.has(keyOf(resource, row.id));
      if (isUpdated) kinds.push(`${resource}.updated`);
      const { id, cause } = row;
      for (const kind of kinds) {
        changes.push({ resource, id, kind, cause, row, fact: null, isSuperseded: false });
      }
    }
  }
  for (const fact of facts) {
    const { resource, id, kind, cause } = fact;
    const row = rows.get(keyOf(resource, id)) ?? null;
    const isSuperseded = fact.shownBy === null;
    changes.push({ resource, id, kind, cause, row, fact, isSuperseded });
  }
  if (changes.length > 0) await insertChanges(trx, changes);
}

/** Tells once for ever that a customer was erased. Must follow the write of the rows. Needs its transaction; idempotent. */
export async function recordErasure(trx: Knex.Transaction, customerId: string): Promise<void> {
  const told: ShownFact = {
    resource: "customer",
    id: customerId,
    kind: "customer.erased",
    subject: "",
    amount: null,
    currency: null,
    cause: "erasure",
    shownBy: null,
  };
  if ((await newFacts(trx, [told])).length === 0) return;
  const { resource, id, kind, cause } = told;
  await insertChanges(trx, [
    { resource, id, kind, cause, row: null, fact: null, isSuperseded: false },
  ]);
}

const keyOf = (resource: string, id: string): string => `${resource}|${id}`;

/** What the states show that are new to the history. Pure. */
function shownFacts(
  written: readonly Written[],
  rows: ReadonlyMap<string, WrittenRow>,
): ShownFact[] {
  const facts = new Map<string, ShownFact>();
  for (const { resource, recorded, changed } of written) {
    for (const state of recorded) {
      for (const fact of factsOf(state)) {
        const key = factKey(fact);
        const shownBy = changed.has(state) ? (rows.get(keyOf(resource, state.id)) ?? null) : null;
        // Of several states that show it, one that the row has now.
        if (shownBy === null && facts.has(key)) continue;
        facts.set(key, { ...fact, cause: state.cause, shownBy });
      }
    }
  }
  return [...facts.values()];
}

const factKey = ({ resource, id, kind, subject }: Fact): string =>
  `${resource}|${id}|${kind}|${subject}`;

/** Keeps what was not told before, for ever, and returns it. Most transactions show none and need no statement. */
async function newFacts(trx: Knex.Transaction, facts: readonly ShownFact[]): Promise<ShownFact[]> {
  if (facts.length === 0) return [];
  const { rows } = await trx.raw<{ rows: { key: string }[] }>(
    `insert into feed.facts (resource, id, kind, subject)
     select * from unnest(?::text[], ?::text[], ?::text[], ?::text[]) as given(resource, id, kind, subject)
     -- Sorted, so that two transactions that show the same facts cannot deadlock.
     order by 1, 2, 3, 4
     on conflict do nothing returning resource || '|' || id || '|' || kind || '|' || subject as key`,
    [
      sqlArray(facts.map(({ resource }) => resource)),
      sqlArray(facts.map(({ id }) => id)),
      sqlArray(facts.map(({ kind }) => kind)),
      sqlArray(facts.map(({ subject }) => subject)),
    ],
  );
  const fresh = new Set(rows.map(({ key }) => key));
  return facts.filter(
    (fact) => fresh.has(factKey(fact)) && !isShownBefore(fact, fact.shownBy?.before ?? null),
  );
}

/**
 * Numbers and writes the changes, in one statement. See readable-until.sql for the lock: it must be held before the
 * first number is taken.
 */
async function insertChanges(trx: Knex.Transaction, changes: readonly Change[]): Promise<void> {
  await trx
    .raw(
      `with turn as materialized (
         select pg_advisory_xact_lock_shared((7255::bigint << 48) | (select last_value from feed.change_numbers))
       )
       insert into feed.changes (seq, resource, id, kind, cause, from_status, to_status, state_group, state_at,
         state_hash, transaction_id, amount, currency, is_superseded)
       select nextval('feed.change_numbers'), given.* from turn cross join unnest(
         ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::text[],
         ?::text[], ?::bigint[], ?::text[], ?::boolean[]) as given`,
      [
        sqlArray(changes.map(({ resource }) => resource)),
        sqlArray(changes.map(({ id }) => id)),
        sqlArray(changes.map(({ kind }) => kind)),
        sqlArray(changes.map(({ cause }) => cause)),
        sqlArray(changes.map(({ row }) => row?.before?.["status"] ?? null)),
        sqlArray(changes.map(({ row }) => row?.after["status"] ?? null)),
        sqlArray(changes.map(({ row }) => row?.state?.group ?? null)),
        sqlArray(changes.map(({ row }) => row?.state?.updatedAt ?? null)),
        sqlArray(changes.map(({ row }) => row?.state?.hash ?? null)),
        sqlArray(changes.map(({ fact }) => (fact?.subject ?? "") || null)),
        sqlArray(changes.map(({ fact }) => fact?.amount ?? null)),
        sqlArray(changes.map(({ fact }) => fact?.currency ?? null)),
        sqlArray(changes.map(({ isSuperseded }) => isSuperseded)),
      ],
    )
    .options({ name: "feed-changes" });
}
