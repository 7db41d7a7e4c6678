import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { namedGroups } from "../table.ts";
import type { MirrorTable, NamedGroup } from "../table.ts";
import { mirrorTables } from "../tables.ts";
import { hashKey } from "./erase-history.ts";
import type { NewHashes } from "./erase-history.ts";
import { customerNamedBy, isObject } from "./owners.ts";
import { withoutPersonalField } from "./personal-data.ts";
import { redactedContent, withHash } from "./redact-states.ts";

type Row = Record<string, unknown>;

/**
 * Redacts the rows of these objects: of each group of fields what is the person's, since an object that moved shows
 * another customer. Needs a transaction, after `eraseHistory`, which says what became of the hashes. Gives back the
 * rows by table; idempotent. Mark the person as erased before.
 */
export async function eraseRows(
  trx: Knex.Transaction,
  customerId: string,
  ids: readonly string[],
  hashes: NewHashes,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of mirrorTables) {
    const rows = await trx<Row>(`mirror.${table.name}`)
      .whereRaw("id = any(?::text[])", [sqlArray(ids)])
      .forUpdate();
    for (const row of rows) {
      const changed = redactedRow(table, row, customerId, hashes);
      if (Object.keys(changed).length === 0) continue;
      await trx(`mirror.${table.name}`)
        .where({ id: String(row["id"]) })
        .update(changed);
    }
    await recompute(trx, table, ids);
    counts[table.name] = rows.length;
  }
  return counts;
}

/** The columns that change. */
function redactedRow(table: MirrorTable, row: Row, customerId: string, hashes: NewHashes): Row {
  const theirs = namedGroups(table).filter((group) => ownerOf(table, group, row) === customerId);
  const changed: Row = {};
  for (const group of theirs) {
    Object.assign(changed, redactedColumns(row, columnsOf(table, group, row)));
    const { contentColumn, versionColumn } = group;
    const version = String(row[versionColumn]);
    const hash = version.slice(version.lastIndexOf("|") + 1);
    const content = contentColumn === undefined ? null : row[contentColumn];
    if (contentColumn === undefined) {
      const known = hashes.get(hashKey(group.group, String(row["id"]), hash));
      if (known !== undefined) changed[versionColumn] = withHash(version, hash, known);
    } else if (content !== null) {
      const redactedTo = redactedContent(JSON.stringify(content));
      changed[contentColumn] = redactedTo.json;
      changed[versionColumn] = withHash(version, hash, redactedTo.hash);
      if (group.group === table.core) changed["content_hash"] = redactedTo.hash;
    }
  }
  return changed;
}

/** Whom a stored group shows, or else its row. */
function ownerOf(table: MirrorTable, { contentColumn }: NamedGroup, row: Row): unknown {
  if (table.name === "customers") return row["id"];
  const content = contentColumn === undefined ? null : row[contentColumn];
  return (isObject(content) ? customerNamedBy(content) : null) ?? row["customer_id"];
}

/** A group's own columns, and the shared ones where it is what they are taken from. */
function columnsOf(table: MirrorTable, group: NamedGroup, row: Row): string[] {
  const { shared, core, groups } = table;
  const own = Object.keys(group.columns);
  if (shared === undefined) return own;
  const hasCore = row[groups[core]?.versionColumn ?? ""] !== "";
  return group.group === (hasCore ? core : shared.with)
    ? [...own, ...Object.keys(shared.columns)]
    : own;
}

const redactedColumns = (row: Row, columns: readonly string[]): Row =>
  Object.fromEntries(columns.map((column) => [column, withoutPersonalField(column, row[column])]));

/** What is made of several groups is made anew. */
async function recompute(
  trx: Knex.Transaction,
  { name, computed }: MirrorTable,
  ids: readonly string[],
): Promise<void> {
  const sets = Object.entries(computed ?? {}).map(
    ([column, sql]) => `${column} = ${sql((field) => `t.${field}`)}`,
  );
  if (sets.length === 0) return;
  await trx.raw(`update mirror.${name} t set ${sets.join(", ")} where id = any(?::text[])`, [
    sqlArray(ids),
  ]);
}
