import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { impersonalValue } from "../privacy/personal-data.ts";
import { mirrorResources, resourceNamed } from "../resources.ts";
import { allColumns } from "../resources/resource.ts";
import type { ObjectKey } from "../snapshot.ts";

type Json = Readonly<Record<string, unknown>>;

export interface FieldChange {
  field: string;
  before: unknown;
  after: unknown;
  /** The values identify a person, or are free text; parts of a nested value may. */
  isPersonal: boolean;
}

/** The fields in which two contents of one object differ, in the order of their names. */
export function changesBetween(resourceName: string, before: Json | null, after: Json | null): FieldChange[] {
  const resource = resourceNamed(resourceName);
  const isPersonal = (field: string, value: unknown): boolean =>
    (value ?? null) !== null && !isSameJson(impersonalValue(resource, field, value), value);
  return [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
    .sort()
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }))
    .filter((change) => !isSameJson(change.before, change.after))
    .map((change) => ({
      ...change,
      isPersonal: [change.before, change.after].some((value) => isPersonal(change.field, value)),
    }));
}

/** The rows of these objects, as JSON by resource and id. One statement for each table; an absent row has no entry. */
export async function readRows(db: Knex, objects: readonly ObjectKey[]): Promise<ReadonlyMap<string, Json>> {
  const found = new Map<string, Json>();
  for (const { name, table } of mirrorResources) {
    const ids = objects.filter(({ resource }) => resource === name).map(({ id }) => id);
    if (ids.length === 0) continue;
    const { rows } = await db.raw<{ rows: { id: string; content: Json }[] }>(
      `select id, to_jsonb(t) as content from mirror.${table} t where id = any(?::text[])`,
      [sqlArray(ids)],
    );
    for (const { id, content } of rows) found.set(rowKey({ resource: name, id }), content);
  }
  return found;
}

export const rowKey = ({ resource, id }: { resource: string; id: string }): string => `${resource}|${id}`;

/**
 * The differences of a row as its reader sees them: its columns, and those fields of its content that have none.
 * Versions and hashes are left out.
 */
export function rowChanges(resourceName: string, before: Json | null, after: Json | null): FieldChange[] {
  return changesBetween(resourceName, shownFields(resourceName, before), shownFields(resourceName, after));
}

function shownFields(resourceName: string, row: Json | null): Json | null {
  if (row === null) return null;
  const resource = resourceNamed(resourceName);
  const columns = Object.keys(allColumns(resource));
  const content = (row["data"] ?? row["inline"] ?? {}) as Json;
  const own = Object.fromEntries(
    ["deleted_at", "items", ...columns].flatMap((name) => (name in row ? [[name, row[name]]] : [])),
  );
  return { ...content, ...own };
}

/** Equality of JSON values, ignoring the order of keys; an absent value equals null. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isSameJson((a as Json)[key], (b as Json)[key]));
}
