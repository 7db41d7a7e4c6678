import type { Knex } from "knex";
import { namedGroups } from "../table.ts";
import type { MirrorTable } from "../table.ts";
import { mirrorTables } from "../tables.ts";
import { isPersonal, withoutPersonalField } from "./personal-data.ts";
import { redactedContent, withHash } from "./redact-states.ts";

type Row = Record<string, unknown>;

export interface ErasedRows {
  /** Rows by table. */
  rows: Record<string, number>;
  /** Ids of everything the mirror knows of the person, the customer's among them. */
  ids: string[];
}

/** Redacts the person's rows. Needs a transaction; idempotent. Mark the person as erased before. */
export async function eraseRows(trx: Knex.Transaction, customerId: string): Promise<ErasedRows> {
  const erased: ErasedRows = { rows: {}, ids: [customerId] };
  for (const table of mirrorTables) {
    const key = table.name === "customers" ? "id" : "customer_id";
    const rows = await trx<Row>(`mirror.${table.name}`).where(key, customerId).forUpdate();
    for (const row of rows) {
      const id = String(row["id"]);
      erased.ids.push(id);
      await trx(`mirror.${table.name}`).where({ id }).update(redactedRow(table, row));
    }
    erased.rows[table.name] = rows.length;
  }
  return erased;
}

/** The columns that change. An array is an order's items, which tell of products. */
function redactedRow(table: MirrorTable, row: Row): Row {
  const changed: Row = {};
  for (const [column, value] of Object.entries(row)) {
    if (isPersonal(column)) changed[column] = withoutPersonalField(column, value);
  }
  for (const { group, contentColumn, versionColumn } of namedGroups(table)) {
    const content = contentColumn === undefined ? null : row[contentColumn];
    if (contentColumn === undefined || !isObject(content)) continue;
    const { json, hash } = redactedContent(JSON.stringify(content));
    const version = String(row[versionColumn]);
    changed[contentColumn] = json;
    changed[versionColumn] = withHash(version, version.slice(version.lastIndexOf("|") + 1), hash);
    if (group === table.core) changed["content_hash"] = hash;
  }
  return changed;
}

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);
