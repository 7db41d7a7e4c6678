import type { Knex } from "knex";
import { redacted } from "../redaction.ts";
import { sqlArray } from "./values.ts";

/** A column in which people write, such as the reason of an act. */
export interface TextColumn {
  table: string;
  key: string;
  column: string;
}

/**
 * Takes out the texts of a column where `isTheirs` is true of the row, as an erasure does, also where triggers keep the
 * table as it is. Needs its transaction; idempotent. Returns how many.
 */
export async function redactTexts(
  trx: Knex.Transaction,
  { table, key, column }: TextColumn,
  isTheirs: (row: { key: string; text: string }) => boolean,
): Promise<number> {
  const rows = await trx(table)
    .whereNotNull(column)
    .whereNot(column, redacted)
    .select<{ key: string; text: string }[]>(trx.raw("??::text as key, ?? as text", [key, column]));
  const theirs = rows.filter(isTheirs).map((row) => row.key);
  if (theirs.length === 0) return 0;
  await trx.raw("select set_config('tallyhook.erasure', 'on', true)");
  const changed = await trx(table)
    .whereRaw("??::text = any(?::text[])", [key, sqlArray(theirs)])
    .update({ [column]: redacted });
  await trx.raw("select set_config('tallyhook.erasure', 'off', true)");
  return changed;
}
