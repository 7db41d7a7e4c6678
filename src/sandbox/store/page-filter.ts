import type { PageQuery } from "./page-query.ts";
import type { Zone } from "./sorted-index.ts";
import type { Row } from "./row.ts";
import type { StoredRecord, Table } from "./table.ts";
import { creationZone } from "./table.ts";

/** Whether a row passes every filter of a query. */
export function filterOf<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): (row: Row<T>) => boolean {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity, test, words } = query;
  const groups = Object.entries(query.anyOf ?? {}).map(([field, values]) => ({
    keyOf: table.keyOf(field),
    values,
  }));
  const amounts = Object.entries(query.within ?? {}).map(([field, bounds]) => ({
    keyOf: table.amount(field).keyOf,
    ...bounds,
  }));
  const among = query.among === undefined ? undefined : new Set(query.among);
  return (row) => {
    if (row.createdAtMs < createdFromMs || row.createdAtMs >= createdBeforeMs) return false;
    for (const { keyOf, values } of groups) {
      const key = keyOf?.(row.value);
      if (key === null || key === undefined || !values.includes(key)) return false;
    }
    for (const { keyOf, least, most } of amounts) {
      const amount = keyOf(row.value);
      if (amount < least || amount > most) return false;
    }
    if (among !== undefined && !among.has(row.id)) return false;
    if (words !== undefined && table.words?.holds(row, words) !== true) return false;
    return test === undefined || test(row.value);
  };
}

/** Whether a chunk with a zone can hold a row that passes. */
export function zoneTest<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): (zone: Zone) => boolean {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity } = query;
  const bounds = Object.entries(query.within ?? {}).map(([field, { least, most }]) => ({
    at: table.amount(field).zone,
    least,
    most,
  }));
  return (zone) => {
    const created = zone[creationZone];
    if (created === undefined) return true;
    if (created.greatest < createdFromMs || created.least >= createdBeforeMs) return false;
    return bounds.every(({ at, least, most }) => {
      const measured = zone[at];
      return measured === undefined || (measured.greatest >= least && measured.least <= most);
    });
  };
}
