import { type Answer, plainAnswer } from "../engine/answer.ts";
import { invalidValue, ApiError } from "../engine/api-error.ts";
import type { Settings } from "../engine/settings.ts";
import type { Space } from "../engine/space.ts";
import { type PageQuery, readPage } from "../engine/store/read-page.ts";
import type { Row, StoredRecord, Table } from "../engine/store/table.ts";

const defaultLimit = 10;

/** The parameters of every paged list. */
export interface PageParameters {
  limit?: number | undefined;
  starting_after?: string | undefined;
  ending_before?: string | undefined;
  sort?: { field: string; descending: boolean } | undefined;
  "created_at[gte]"?: number | undefined;
  "created_at[lt]"?: number | undefined;
}

export interface ListOptions<T> {
  /** The path of the list, which the answer repeats. */
  url: string;
  show: (record: T) => Record<string, unknown>;
  anyOf?: PageQuery<T>["anyOf"];
  among?: PageQuery<T>["among"];
  test?: PageQuery<T>["test"];
  /** The sparse fieldset, if the request has one. */
  fields?: readonly string[] | undefined;
}

/** Whether an amount lies within the bounds of a filter, both included. */
export function isWithin(cents: number, least: number | undefined, most: number | undefined): boolean {
  if (least === undefined && most === undefined) return true;
  return cents >= (least ?? 0) && cents <= (most ?? Infinity);
}

/** A page of a table, in the envelope of the service's lists. */
export function listAnswer<T extends StoredRecord>(
  space: Space,
  table: Table<T>,
  query: PageParameters,
  options: ListOptions<T>,
): Answer {
  const settings = space.settings();
  const sort = sortOf(query, table, settings);
  const cursors = cursorsOf(table, query);
  const page = readPage(table, {
    ...definedOnly({
      createdFromMs: query["created_at[gte]"],
      createdBeforeMs: query["created_at[lt]"],
      anyOf: options.anyOf,
      among: options.among,
      test: settings.page_boundary_ties === "dropped" ? withoutTies(options, cursors) : options.test,
      ...cursors,
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

function limitOf(asked: number | undefined, settings: Settings): number {
  const limit = asked ?? defaultLimit;
  if (limit <= settings.maximum_page_size) return limit;
  if (settings.limit_above_maximum === "clamped") return settings.maximum_page_size;
  throw invalidValue("limit", `must be at most ${settings.maximum_page_size}`);
}

function sortOf<T extends StoredRecord>(
  query: PageParameters,
  table: Table<T>,
  settings: Settings,
): { field: string; descending: boolean } {
  const newestFirst = { field: "created_at", descending: true };
  const { sort } = query;
  if (sort === undefined || sort.field === "created_at") return sort ?? newestFirst;
  if (sort.field === "updated_at" && settings.sort_by_updated_at === "ignored") return newestFirst;
  const isRefused = sort.field === "updated_at" && settings.sort_by_updated_at === "refused";
  if (isRefused || table.sortKey(sort.field) === undefined) {
    throw invalidValue("sort", `cannot sort by ${sort.field}`);
  }
  return sort;
}

type Cursors<T> = Pick<PageQuery<T>, "after" | "before">;

function cursorsOf<T extends StoredRecord>(table: Table<T>, query: PageParameters): Cursors<T> {
  const { starting_after, ending_before } = query;
  if (starting_after !== undefined && ending_before !== undefined) {
    throw new ApiError("invalid_value", "Send either starting_after or ending_before.", "ending_before");
  }
  if (starting_after !== undefined) {
    return { after: cursorRow(table, "starting_after", starting_after) };
  }
  if (ending_before !== undefined) {
    return { before: cursorRow(table, "ending_before", ending_before) };
  }
  return {};
}

/** Leaves out objects created in the second of the cursor, which a client that pages by time alone would miss. */
function withoutTies<T extends StoredRecord>(
  { test }: Pick<ListOptions<T>, "test">,
  { after, before }: Cursors<T>,
): PageQuery<T>["test"] {
  const cursor = after ?? before;
  if (cursor === undefined) return test;
  const second = secondOf(cursor.value);
  return (record) => secondOf(record) !== second && (test === undefined || test(record));
}

function secondOf({ created_at }: StoredRecord): string {
  return created_at.slice(0, 19);
}

/** The row of a cursor. The object only has to exist: one that no longer matches the filter still has its place. */
function cursorRow<T extends StoredRecord>(table: Table<T>, param: string, id: string): Row<T> {
  const row = table.row(id);
  if (row === undefined) throw invalidValue(param, "no such object");
  return row;
}

function onlyFields(body: Record<string, unknown>, fields: readonly string[] | undefined): Record<string, unknown> {
  if (fields === undefined) return body;
  const wanted = new Set(["id", ...fields]);
  return Object.fromEntries(Object.entries(body).filter(([field]) => wanted.has(field)));
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

function definedOnly<T extends object>(fields: T): Partial<Defined<T>> {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as Partial<Defined<T>>;
}
