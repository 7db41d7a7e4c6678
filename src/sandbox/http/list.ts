import type { Answer } from "../answer.ts";
import { plainAnswer } from "../answer.ts";
import { invalidValue, Refusal } from "../refusal.ts";
import type { Settings } from "../settings.ts";
import type { Space } from "../space.ts";
import type { PageQuery } from "../store/page-query.ts";
import { readPage } from "../store/page.ts";
import type { Row, StoredRecord, Table } from "../store/table.ts";

const defaultLimit = 10;

/** The parameters that every paged list shares. */
export interface PageParameters {
  limit?: number | undefined;
  starting_after?: string | undefined;
  ending_before?: string | undefined;
  sort?: { field: string; descending: boolean } | undefined;
  "created_at[gte]"?: number | undefined;
  "created_at[lt]"?: number | undefined;
}

export interface ListOptions<T> {
  /** The path of the list, which its answer repeats. */
  url: string;
  show: (record: T) => Record<string, unknown>;
  /** How to sort by other fields than `created_at`. */
  sorts?: Record<string, (a: T, b: T) => number>;
  anyOf?: PageQuery<T>["anyOf"];
  among?: PageQuery<T>["among"];
  within?: PageQuery<T>["within"] | undefined;
  test?: PageQuery<T>["test"];
  /** The sparse fieldset, if one was asked for. */
  fields?: readonly string[] | undefined;
}

/** Compares by one field. */
export function by<T, K extends string | number>(keyOf: (record: T) => K) {
  return (a: T, b: T): number => {
    const keyA = keyOf(a);
    const keyB = keyOf(b);
    return keyA < keyB ? -1 : keyA > keyB ? 1 : 0;
  };
}

/** The bounds of an amount that a filter names, both included; undefined when it names none. */
export function centsWithin(
  field: string,
  least: number | undefined,
  most: number | undefined,
): PageQuery<unknown>["within"] {
  if (least === undefined && most === undefined) return undefined;
  return { [field]: { least: least ?? 0, most: most ?? Infinity } };
}

/** A page of a table as lists answer it (spec, Conventions). */
export function listAnswer<T extends StoredRecord>(
  space: Space,
  table: Table<T>,
  query: PageParameters,
  options: ListOptions<T>,
): Answer {
  const settings = space.settings();
  const sort = sortOf(query, options, settings);
  const compareBy = comparisonOf(options, sort.field);
  const page = readPage(table, {
    ...definedOnly({
      createdFromMs: query["created_at[gte]"],
      createdBeforeMs: query["created_at[lt]"],
      anyOf: options.anyOf,
      among: options.among,
      within: options.within,
      test: options.test,
      compareBy,
      ...cursorsOf(table, query),
    }),
    sortField: sort.field,
    descending: sort.descending,
    limit: limitOf(query.limit, settings),
  });
  const isLastPage = !page.hasMore && query.ending_before === undefined;
  return plainAnswer(200, {
    data: page.records.map((record) => onlyFields(options.show(record), options.fields)),
    url: options.url,
    has_more: page.hasMore,
    cursors: { next: isLastPage ? null : (page.records.at(-1)?.id ?? null) },
  });
}

function comparisonOf<T>({ sorts = {} }: ListOptions<T>, field: string) {
  return Object.hasOwn(sorts, field) ? sorts[field] : undefined;
}

function limitOf(asked: number | undefined, settings: Settings): number {
  const limit = asked ?? defaultLimit;
  if (limit <= settings.maximum_page_size) return limit;
  if (settings.limit_above_maximum === "clamped") return settings.maximum_page_size;
  throw invalidValue("limit", `must be at most ${settings.maximum_page_size}`);
}

function sortOf<T>(
  query: PageParameters,
  options: ListOptions<T>,
  settings: Settings,
): { field: string; descending: boolean } {
  const newestFirst = { field: "created_at", descending: true };
  const { sort } = query;
  if (sort === undefined || sort.field === "created_at") return sort ?? newestFirst;
  if (sort.field === "updated_at" && settings.sort_by_updated_at === "ignored") return newestFirst;
  const isRefused = sort.field === "updated_at" && settings.sort_by_updated_at === "refused";
  if (isRefused || comparisonOf(options, sort.field) === undefined) {
    throw invalidValue("sort", `cannot sort by ${sort.field}`);
  }
  return sort;
}

function cursorsOf<T extends StoredRecord>(
  table: Table<T>,
  query: PageParameters,
): { after?: Row<T>; before?: Row<T> } {
  const { starting_after, ending_before } = query;
  if (starting_after !== undefined && ending_before !== undefined) {
    throw new Refusal(
      "invalid_value",
      "Send either starting_after or ending_before.",
      "ending_before",
    );
  }
  if (starting_after !== undefined) {
    return { after: cursorRow(table, "starting_after", starting_after) };
  }
  if (ending_before !== undefined) {
    return { before: cursorRow(table, "ending_before", ending_before) };
  }
  return {};
}

/** A cursor only needs to exist: an object that no longer matches the filter still has its place (statement 131). */
function cursorRow<T extends StoredRecord>(table: Table<T>, param: string, id: string): Row<T> {
  const row = table.row(id);
  if (row === undefined) throw invalidValue(param, "no such object");
  return row;
}

function onlyFields(
  body: Record<string, unknown>,
  fields: readonly string[] | undefined,
): Record<string, unknown> {
  if (fields === undefined) return body;
  const wanted = new Set(["id", ...fields]);
  return Object.fromEntries(Object.entries(body).filter(([field]) => wanted.has(field)));
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

function definedOnly<T extends object>(fields: T): Partial<Defined<T>> {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as Partial<Defined<T>>;
}
