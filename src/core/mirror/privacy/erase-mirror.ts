import type { Knex } from "knex";
import { redactTexts } from "../../../platform/postgres/redact-texts.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { isObject } from "../../contract/wire-types.ts";
import { mirrorResources } from "../resources.ts";
import { type MirrorResource, type NamedGroup, namedGroups } from "../resources/resource.ts";
import { type PersonTraces, addTraces, customerNamedBy } from "./data-subject.ts";
import { groupsInHistory, isPerson, ownedTables, redactedContent, withHash } from "./erased-people.ts";
import { withoutPersonalField } from "./personal-data.ts";

interface VersionRow {
  seq: string;
  resource: string;
  id: string;
  source_updated_at: string;
  content_hash: string;
  data: Record<string, unknown>;
}

/** New hashes of redacted contents, by group, object and old hash. */
export type NewHashes = ReadonlyMap<string, string>;

const hashKey = (group: string, id: string, hash: string): string => `${group}|${id}|${hash}`;

/** The hash that replaced this one; undefined where it was not replaced. */
export const newHashOf = (hashes: NewHashes, group: string, id: string, hash: string): string | undefined =>
  hashes.get(hashKey(group, id, hash));

/** The ids of the customer and of all objects that ever belonged to the customer. Reads the whole history. */
export async function objectsOf(db: Knex, customerId: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `select id from mirror.versions where data->>'customer_id' = :customerId
     union select id from mirror.unbelieved where data->>'customer_id' = :customerId
     ${ownedTables.map((table) => `union select id from mirror.${table} where customer_id = :customerId`).join("\n     ")}
     union select :customerId`,
    { customerId },
  );
  return rows.map(({ id }) => id);
}

/** All personal traces in the person's states, believed or not. Reads the whole history. */
export async function tracesOf(db: Knex, customerId: string): Promise<PersonTraces> {
  const states = (table: string): string =>
    `select data from mirror.${table}
     where data->>'customer_id' = :customerId or (${isPerson("resource")} and id = :customerId)`;
  const { rows } = await db.raw<{ rows: { data: unknown }[] }>(
    `${states("versions")} union all ${states("unbelieved")}`,
    { customerId },
  );
  const traces: PersonTraces = { contacts: new Set(), names: new Set() };
  for (const { data } of rows) addTraces(data, customerId, traces, { isTheirs: true });
  return traces;
}

/**
 * Redacts the states of these objects, except those that show another customer, since an order may have moved. Two
 * states that differed only in personal data are both kept, the later recorded one as a twin, so that as-of reports
 * still know when each was recorded and which states a read saw. History changes only here and in a heal
 * (overwrite.ts); a setting of the transaction lets the table's trigger permit it. Needs a transaction. Idempotent.
 * Returns the number of states and their new hashes.
 */
export async function eraseHistory(
  trx: Knex.Transaction,
  customerId: string,
  ids: readonly string[],
): Promise<{ states: number; hashes: NewHashes }> {
  await trx.raw("select set_config('tallyhook.erasure', 'on', true)");
  const { rows } = await trx.raw<{ rows: VersionRow[] }>(
    `select v.seq, v.resource, v.id, v.source_updated_at::text as source_updated_at, v.content_hash, v.data
     from mirror.versions v join unnest(?::text[]) as of_group(resource) on v.resource = of_group.resource
     where v.id = any(?::text[]) and coalesce(v.data->>'customer_id', ?) = ?
     order by v.recorded_at, v.seq`,
    [sqlArray(groupsInHistory), sqlArray(ids), customerId, customerId],
  );
  // Nothing depends on unbelieved states, so they are deleted.
  await trx("mirror.unbelieved")
    .whereIn("id", [...ids])
    .orWhereRaw("data->>'customer_id' = ?", [customerId])
    .delete();
  const hashes = new Map<string, string>();
  for (const { seq, resource, id, source_updated_at, content_hash, data } of rows) {
    const { json, hash } = redactedContent(JSON.stringify(data));
    if (hash === content_hash) continue;
    hashes.set(hashKey(resource, id, content_hash), hash);
    await trx.raw(
      `update mirror.versions set data = :json::jsonb, content_hash = :hash, twin = (
         select count(*) from mirror.versions same
         where same.resource = :resource and same.id = :id and same.content_hash = :hash
           and same.source_updated_at = :source_updated_at::timestamptz)
       where resource = :resource and id = :id and source_updated_at = :source_updated_at::timestamptz
         and content_hash = :content_hash and seq = :seq`,
      { json, hash, resource, id, source_updated_at, content_hash, seq },
    );
  }
  await trx.raw("select set_config('tallyhook.erasure', 'off', true)");
  return { states: rows.length, hashes };
}

type Row = Record<string, unknown>;

/**
 * Redacts the rows of these objects, but only the groups of fields that show this person: an object that moved also
 * shows another customer. Mark the person as erased first, then call `eraseHistory`, which returns the new hashes.
 * Needs a transaction. Idempotent. Returns the number of rows by table.
 */
export async function eraseRows(
  trx: Knex.Transaction,
  customerId: string,
  ids: readonly string[],
  hashes: NewHashes,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const resource of mirrorResources) {
    const rows = await trx<Row>(`mirror.${resource.table}`)
      .whereRaw("id = any(?::text[])", [sqlArray(ids)])
      .forUpdate();
    for (const row of rows) {
      const changed = redactedRow(resource, row, customerId, hashes);
      if (Object.keys(changed).length === 0) continue;
      await trx(`mirror.${resource.table}`)
        .where({ id: String(row["id"]) })
        .update(changed);
    }
    await recompute(trx, resource, ids);
    counts[resource.table] = rows.length;
  }
  return counts;
}

/** The columns that change. */
function redactedRow(resource: MirrorResource, row: Row, customerId: string, hashes: NewHashes): Row {
  const theirs = namedGroups(resource).filter((group) => ownerOf(resource, group, row) === customerId);
  const changed: Row = {};
  for (const group of theirs) {
    Object.assign(changed, redactedColumns(row, columnsOf(resource, group, row)));
    const { contentColumn, versionColumn } = group;
    const version = String(row[versionColumn]);
    const hash = version.slice(version.lastIndexOf("|") + 1);
    const content = contentColumn === undefined ? null : row[contentColumn];
    if (contentColumn === undefined) {
      const known = newHashOf(hashes, group.group, String(row["id"]), hash);
      if (known !== undefined) changed[versionColumn] = withHash(version, hash, known);
    } else if (content !== null) {
      const redactedTo = redactedContent(JSON.stringify(content));
      changed[contentColumn] = redactedTo.json;
      changed[versionColumn] = withHash(version, hash, redactedTo.hash);
      if (group.group === resource.name) changed["content_hash"] = redactedTo.hash;
    }
  }
  return changed;
}

/** The customer that a stored group names; if it names none, the row's. */
function ownerOf({ owner }: MirrorResource, { contentColumn }: NamedGroup, row: Row): unknown {
  if (owner !== "customer_id") return owner === null ? null : row[owner];
  const content = contentColumn === undefined ? null : row[contentColumn];
  return (isObject(content) ? customerNamedBy(content) : null) ?? row["customer_id"];
}

/** A group's own columns, and the shared ones if it owns them. */
function columnsOf(resource: MirrorResource, group: NamedGroup, row: Row): string[] {
  const { shared, name: core, groups } = resource;
  const own = Object.keys(group.columns);
  if (shared === undefined) return own;
  const hasCore = row[groups[core]?.versionColumn ?? ""] !== "";
  return group.group === (hasCore ? core : shared.with) ? [...own, ...Object.keys(shared.columns)] : own;
}

const redactedColumns = (row: Row, columns: readonly string[]): Row =>
  Object.fromEntries(columns.map((column) => [column, withoutPersonalField(column, row[column]) ?? null]));

/** Recomputes the columns that derive from several groups. */
async function recompute(
  trx: Knex.Transaction,
  { table, computed }: MirrorResource,
  ids: readonly string[],
): Promise<void> {
  const sets = Object.entries(computed ?? {}).map(([column, sql]) => `${column} = ${sql((field) => `t.${field}`)}`);
  if (sets.length === 0) return;
  await trx.raw(`update mirror.${table} t set ${sets.join(", ")} where id = any(?::text[])`, [sqlArray(ids)]);
}

/** Records of an erasure: the actor, the customer, the reason and the rows of each kind. Entries never change. */
export interface ErasureEntry {
  customerId: string;
  by: string;
  reason: string | null;
  counts: Readonly<Record<string, number>>;
}

/**
 * Takes out the reasons that people gave for heals of these objects, and those of other heals and of former erasures
 * that name the person. Needs the erasure's transaction; idempotent. Returns how many.
 */
export async function eraseReasons(
  trx: Knex.Transaction,
  ids: readonly string[],
  named: (text: string) => boolean,
): Promise<number> {
  const own = new Set(
    await trx("mirror.heals")
      .whereRaw("id = any(?::text[])", [sqlArray(ids)])
      .pluck<string[]>("seq"),
  );
  const heals = { table: "mirror.heals", key: "seq", column: "reason" };
  const erasures = { table: "mirror.erasure_log", key: "id", column: "reason" };
  return (
    (await redactTexts(trx, heals, ({ key, text }) => own.has(key) || named(text))) +
    (await redactTexts(trx, erasures, ({ text }) => named(text)))
  );
}

export async function logErasure(db: Knex, entry: ErasureEntry): Promise<void> {
  await db("mirror.erasure_log").insert({
    customer_id: entry.customerId,
    erased_by: entry.by,
    reason: entry.reason,
    counts: JSON.stringify(entry.counts),
  });
}
