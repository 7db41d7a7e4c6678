import type { Knex } from "knex";
import { type TransactionLimits, settingLimits } from "../../../platform/postgres/transactions.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { type Written, recordChanges } from "../changes/record-changes.ts";
import { redactErased } from "../privacy/erased-people.ts";
import { decode, mirrorResources } from "../resources.ts";
import type { GroupState, ObjectKey, Snapshot } from "../snapshot.ts";
import { isConfirmedBy } from "../version.ts";
import { type WriteResult, rowWriter, tableRows } from "./write-rows.ts";
import { noteMisdated, settleMisdated } from "../misdated.ts";

export type Outcome =
  | { outcome: "applied" | "stale"; id: string }
  /** Dated in the future: kept in `mirror.unbelieved`; the mirror is unchanged. */
  | { outcome: "unbelieved"; id: string; changedAt: string }
  | { outcome: "partial"; id: string }
  | { outcome: "unreadable"; reason: string };

/** An object with a tie: events alone do not show which of its states is the last. */
export interface TiedObject extends ObjectKey {
  updatedAt: string;
}

export interface ApplyResult {
  /** One for each snapshot, in the same order. */
  outcomes: Outcome[];
  /** Objects to refetch once the service's `Date` has reached `confirmableFrom(updatedAt)`. */
  ties: TiedObject[];
  /** Objects that were embedded without a readable state, or whose event lacks a known field: to be refetched. */
  unread: ObjectKey[];
  /** States that changed the history or a row. */
  written: GroupState[];
  /** States dated in the future. */
  unbelieved: GroupState[];
}

const tables = mirrorResources.map((resource) => ({ resource, write: rowWriter(resource) }));

/**
 * Applies snapshots: brings each row to the newest of its stored and given states, and records every state in the
 * history. The number of statements has a fixed maximum, whatever the number of snapshots: untouched tables need none.
 * Commutative and idempotent. Needs a transaction. May fail with a conflict (`isRetryableConflict`); the whole
 * transaction may then be repeated.
 */
export async function applySnapshots(
  trx: Knex.Transaction,
  observations: readonly Snapshot[],
  limits: WriterLimits = defaultWriterLimits,
): Promise<ApplyResult> {
  const decoded = observations.map(decode);
  const states = decoded.flatMap((d) => ("states" in d ? d.states : []));
  const written = await applyStates(trx, states, limits);
  const outcomes = decoded.map((d): Outcome => {
    if (!d.ok) {
      return d.partial ? { outcome: "partial", id: d.id } : { outcome: "unreadable", reason: d.reason };
    }
    const [core] = d.states;
    if (core?.isBelieved === false) {
      return { outcome: "unbelieved", id: d.id, changedAt: core.changedAt };
    }
    const isApplied = d.states.some((state) => written.changed.has(state));
    return { outcome: isApplied ? "applied" : "stale", id: d.id };
  });
  return {
    outcomes,
    ties: await tiedObjects(trx, states, written),
    unread: [...decoded.flatMap((d) => (d.ok ? d.unread : [])), ...(await findForgotten(trx, states, written))],
    written: newStates(written),
    unbelieved: states.filter(({ isBelieved }) => !isBelieved),
  };
}

/** States that the write added to the history or to a row. */
export const newStates = ({ recorded, changed }: WriteResult): GroupState[] => [...new Set([...recorded, ...changed])];

/**
 * The only writer of the mirror's rows, apart from a heal and an erasure. Applies states that are already decoded, or
 * made for an absence. States dated in the future go to `mirror.unbelieved`; states of events that a person overruled
 * (`overwriteObject`) are skipped. Needs a transaction.
 */
export async function applyStates(
  trx: Knex.Transaction,
  states: readonly GroupState[],
  limits: WriterLimits = defaultWriterLimits,
): Promise<WriteResult> {
  const all: WriteResult = { recorded: new Set(), changed: new Set(), fresh: new Set(), rows: [] };
  if (states.length === 0) return all;
  const known = await beginWriting(trx, limits);
  if (known.isAnybodyErased) await redactErased(trx, states);
  const believed = states.filter(({ isBelieved }) => isBelieved);
  if (known.isAnythingMisdated) await settleMisdated(trx, believed);
  if (believed.length < states.length) await keepUnbelieved(trx, states);
  const overruled = await findOverruled(trx, known.isAnythingHealed ? believed : []);
  const written: Written[] = [];
  for (const { resource, write } of tables) {
    const own = believed.filter((state) => Object.hasOwn(resource.groups, state.group) && !overruled.has(state));
    if (own.length === 0) continue;
    const result = await write(trx, tableRows(resource, own));
    const { recorded, changed, fresh } = result;
    written.push({ resource: resource.name, ...result });
    for (const state of recorded) all.recorded.add(state);
    for (const state of changed) all.changed.add(state);
    for (const state of fresh) all.fresh.add(state);
  }
  await recordChanges(trx, written);
  return all;
}

/** Finds the ties: two contents with one `updated_at`, and no read late enough to confirm which is the last. */
async function tiedObjects(
  trx: Knex.Transaction,
  states: readonly GroupState[],
  { recorded, fresh }: WriteResult,
): Promise<TiedObject[]> {
  const unsure = states.filter((state) => recorded.has(state) && isUnconfirmed(state));
  // The history of an object that had no row holds only the states of this batch.
  const known = unsure.filter((state) => !fresh.has(state));
  const tied = [...tiesInBatch(states, recorded), ...(await findTies(trx, known))];
  const objects = new Map<string, TiedObject>();
  for (const { confirmedBy, changedAt: updatedAt } of tied) {
    if (confirmedBy === null) continue;
    const key = `${confirmedBy.resource}|${confirmedBy.id}`;
    const other = objects.get(key);
    if (other === undefined || other.updatedAt < updatedAt) objects.set(key, { ...confirmedBy, updatedAt });
  }
  return [...objects.values()];
}

const isUnconfirmed = ({ confirmedBy, observedAt, changedAt }: GroupState): boolean =>
  confirmedBy !== null && !isConfirmedBy(observedAt, changedAt);

function tiesInBatch(states: readonly GroupState[], recorded: ReadonlySet<GroupState>): GroupState[] {
  const times = new Map<string, GroupState[]>();
  for (const state of states) {
    if (!recorded.has(state)) continue;
    const key = `${state.group}|${state.id}|${state.updatedAt}`;
    const same = times.get(key);
    if (same === undefined) times.set(key, [state]);
    else same.push(state);
  }
  return [...times.values()].flatMap((same) => (same.length > 1 && same.every(isUnconfirmed) ? same : []));
}

/**
 * The states that tie with one in the history: same `updated_at`, other content. One statement. Must follow the write
 * of the objects' rows, whose locks put concurrent writers of one object in sequence.
 */
async function findTies(trx: Knex.Transaction, states: readonly GroupState[]): Promise<GroupState[]> {
  if (states.length === 0) return [];
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       where exists (
         select from mirror.versions v
         where v.resource = given.resource and v.id = given.id
           and v.source_updated_at = given.source_updated_at and v.content_hash <> given.content_hash)`,
      [
        sqlArray(states.map(({ group }) => group)),
        sqlArray(states.map(({ id }) => id)),
        sqlArray(states.map(({ updatedAt }) => updatedAt)),
        sqlArray(states.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-ties" });
  return rows.flatMap(({ n }) => states[Number(n) - 1] ?? []);
}

/**
 * The objects of which an event lacks a field that the state before has: the row now shows no value there, and only a
 * read can confirm that. Compares neighbours in the history, in any order of arrival, so that one read is enough where
 * the service leaves a field out permanently. One statement where an event lacks fields, or came late. Must follow the
 * write of the objects' rows, as `findTies`.
 */
async function findForgotten(
  trx: Knex.Transaction,
  states: readonly GroupState[],
  { recorded, changed, fresh }: WriteResult,
): Promise<ObjectKey[]> {
  const unsure = states.filter(
    (state) =>
      recorded.has(state) && state.confirmedBy !== null && (state.absentFields.length > 0 || !changed.has(state)),
  );
  if (unsure.length === 0) return [];
  const [seenOnce, repeated] = [new Set<string>(), new Set<string>()];
  for (const { group, id } of states) {
    const key = `${group}|${id}`;
    (seenOnce.has(key) ? repeated : seenOnce).add(key);
  }
  // The history of an object that had no row holds only the states of this batch.
  const given = unsure.filter((state) => !fresh.has(state) || repeated.has(`${state.group}|${state.id}`));
  if (given.length === 0) return [];
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       join mirror.versions own using (resource, id, source_updated_at, content_hash)
       where exists (
         select from (
           select b.data from mirror.versions b
           where b.resource = own.resource and b.id = own.id and b.source_updated_at < own.source_updated_at
           order by b.source_updated_at desc, b.observed_at desc nulls last, b.content_hash limit 1) before
         cross join unnest(own.absent_fields) field where before.data #> string_to_array(field, '.') is not null
       ) or exists (
         select from (
           select a.absent_fields from mirror.versions a
           where a.resource = own.resource and a.id = own.id and a.source_updated_at > own.source_updated_at
           order by a.source_updated_at, a.observed_at nulls first, a.content_hash limit 1) after
         cross join unnest(after.absent_fields) field where own.data #> string_to_array(field, '.') is not null)`,
      [
        sqlArray(given.map(({ group }) => group)),
        sqlArray(given.map(({ id }) => id)),
        sqlArray(given.map(({ updatedAt }) => updatedAt)),
        sqlArray(given.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-forgotten" });
  const forgotten = rows.flatMap(({ n }) => given[Number(n) - 1]?.confirmedBy ?? []);
  return [...new Map(forgotten.map((object) => [`${object.resource}|${object.id}`, object])).values()];
}

/** Returns the states that are already in the history. One statement. */
export async function findRecorded(db: Knex, states: readonly GroupState[]): Promise<Set<GroupState>> {
  if (states.length === 0) return new Set();
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
       with ordinality as given(resource, id, source_updated_at, content_hash, n)
     join mirror.versions v using (resource, id, source_updated_at, content_hash)`,
    [
      sqlArray(states.map(({ group }) => group)),
      sqlArray(states.map(({ id }) => id)),
      sqlArray(states.map(({ updatedAt }) => updatedAt)),
      sqlArray(states.map(({ hash }) => hash)),
    ],
  );
  return new Set(rows.flatMap(({ n }) => states[Number(n) - 1] ?? []));
}

/**
 * Records the states dated in the future in `mirror.unbelieved`, so that readers of the history never meet them, and
 * that their objects wait for a read (`mirror.misdated`).
 * Redacts erased people first. Idempotent. Needs a transaction.
 */
export async function keepUnbelieved(trx: Knex.Transaction, states: readonly GroupState[]): Promise<void> {
  const kept = states.filter(({ isBelieved }) => !isBelieved);
  if (kept.length === 0) return;
  await redactErased(trx, kept);
  await trx.raw(
    `insert into mirror.unbelieved (resource, id, source_updated_at, content_hash, observed_at, cause, data)
     select * from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[], ?::timestamptz[], ?::text[], ?::jsonb[])
     on conflict do nothing`,
    [
      sqlArray(kept.map(({ group }) => group)),
      sqlArray(kept.map(({ id }) => id)),
      sqlArray(kept.map(({ updatedAt }) => updatedAt)),
      sqlArray(kept.map(({ hash }) => hash)),
      sqlArray(kept.map(({ observedAt }) => observedAt)),
      sqlArray(kept.map(({ cause }) => cause)),
      sqlArray(kept.map(({ json }) => json)),
    ],
  );
  await noteMisdated(trx, kept);
}

/**
 * The states of events that a person overruled by a heal: they stay overruled when an event repeats them. A read shows
 * the service's present state, so it is never overruled. One statement.
 */
async function findOverruled(trx: Knex.Transaction, states: readonly GroupState[]): Promise<ReadonlySet<GroupState>> {
  const fromEvents = states.filter(({ observedAt }) => observedAt === null);
  if (fromEvents.length === 0) return new Set();
  const { rows } = await trx
    .raw<{ rows: { n: string }[] }>(
      `select n from unnest(?::text[], ?::text[], ?::timestamptz[], ?::text[])
         with ordinality as given(resource, id, source_updated_at, content_hash, n)
       join mirror.unbelieved u using (resource, id, source_updated_at, content_hash) where u.heal is not null`,
      [
        sqlArray(fromEvents.map(({ group }) => group)),
        sqlArray(fromEvents.map(({ id }) => id)),
        sqlArray(fromEvents.map(({ updatedAt }) => updatedAt)),
        sqlArray(fromEvents.map(({ hash }) => hash)),
      ],
    )
    .options({ name: "mirror-overruled" });
  return new Set(rows.flatMap(({ n }) => fromEvents[Number(n) - 1] ?? []));
}

export interface WriterLimits extends TransactionLimits {
  lockMs: number;
}

/**
 * A statement times out well before its transaction, so that a slow statement fails with its own error (57014) and the
 * connection survives. The wait for a lock is short, since many objects share a transaction: one locked row must not
 * hold up the others, and the rows already locked stay locked during the wait.
 */
export const defaultWriterLimits: WriterLimits = {
  statementMs: 20_000,
  lockMs: 2_000,
  transactionMs: 30_000,
};

/** After a lock time-out, while the halves of a batch are tried: rows that are not free immediately are left out. */
export const withoutWaiting = (limits: WriterLimits): WriterLimits => ({
  ...limits,
  lockMs: Math.min(limits.lockMs, 20),
});

/** Checks that a writer may skip if they are false. */
export interface WriterFacts {
  /** An object waits for a read that is not dated in the future. */
  isAnythingMisdated: boolean;
  isAnybodyErased: boolean;
  /** A person healed an object: an event may repeat a state that was overruled. */
  isAnythingHealed: boolean;
}

/**
 * Limits a writer's transaction, to 30 s by default. Reports as of a time rely on it: a row recorded more than a minute
 * ago is committed or never will be. That is certain from PostgreSQL 17 on (`settingLimits`). Reads `WriterFacts` in
 * the same statement; an erasure that begins later waits for the writer (`markErased`), so that the answer stays true.
 * Idempotent within a transaction.
 */
export async function beginWriting(trx: Knex.Transaction, limits: WriterLimits): Promise<WriterFacts> {
  const { rows } = await trx
    .raw<{ rows: [WriterFacts] }>(
      `select ${settingLimits},
         exists (select from mirror.erasures) as "isAnybodyErased",
         exists (select from mirror.heals) as "isAnythingHealed",
         exists (select from mirror.misdated) as "isAnythingMisdated"`,
      { ...limits },
    )
    .options({ name: "mirror-begin" });
  return rows[0];
}
