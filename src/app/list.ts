import type { Knex } from "knex";
import { quoted, tallyhook } from "../platform/command-line.ts";
import { withoutControls } from "../platform/readable-text.ts";
import type { Taken } from "./cli/command.ts";
import type { FilterInput, Problems } from "./dashboard/elements/filter-form.ts";
import { type Field, optional, wholeNumber } from "./people/fields.ts";

/** One way to narrow a list down: how it is read, the same at both doors, and how command and page ask for it. */
export interface Filter<T> extends Taken, Omit<FilterInput, "is"> {
  readonly is: Field<T>;
}

/** Filters by the names of their parameters in the page's address. */
export type FiltersOf<Filters> = { readonly [Name in keyof Filters]: Filter<Filters[Name]> };

/**
 * The filters of a list. A filter that cannot be read is refused at both doors, since without it the list would be
 * another one: a command ends as for wrong usage, a page answers 400, says it next to the field and lists nothing.
 */
export interface Filtered<Filters> {
  /** The words of its command: `alerts list`. It prints as many rows as the page shows. */
  readonly command: string;
  /** The path of its page. */
  readonly path: string;
  readonly filters: FiltersOf<Filters>;
}

/** Rows that people read by a command and on a page, in one order. */
export interface List<Filters, Row> extends Filtered<Filters> {
  read(db: Knex, filters: Filters, limit: number): Promise<Row[]>;
  /** The text that the filter `before` takes for the rows after this one. */
  keyOf(row: Row): string | number;
}

/** The type of the filters comes from their fields. */
export const list = <Filters, Row>(definition: List<Filters, Row>): List<Filters, Row> => definition;

/** Where a page begins, in a list with numbered rows, the newest first. */
export const before = {
  is: optional(wholeNumber(1, 999_999_999_999_999)),
  flags: "--before <n>",
  says: "only what is older than the one with this number",
};

/** Reads the filters of an address; null where one cannot be read. */
export function filtersIn<Filters>(
  filters: { readonly [Name in keyof Filters]: { readonly is: Field<Filters[Name]> } },
  query: URLSearchParams,
): { values: Filters; problems: null } | { values: null; problems: Problems } {
  const problems: Record<string, string> = {};
  const values = Object.entries<{ is: Field<unknown> }>(filters).map(([name, { is }]) => {
    const typed = typedIn(query, name);
    const value = typed === "" ? undefined : is.read(typed);
    if (typed !== "" && value === undefined) {
      problems[name] = `“${withoutControls(typed).slice(0, 60)}” is not ${is.wanted}.`;
    }
    return [name, value ?? is.absent?.value];
  });
  if (Object.keys(problems).length > 0) return { values: null, problems };
  return { values: Object.fromEntries(values) as Filters, problems: null };
}

const typedIn = (query: URLSearchParams, name: string): string => query.get(name)?.trim() ?? "";

/** The command that prints what a page shows whose filters could be read. */
export function commandFor<Filters>({ command, filters }: Filtered<Filters>, query: URLSearchParams): string {
  const options = Object.entries<Filter<unknown>>(filters).flatMap(([name, { flags }]) => {
    const typed = typedIn(query, name);
    return typed === "" ? [] : [`${flags.split(" ")[0] ?? ""} ${quoted(typed)}`];
  });
  return tallyhook([command, ...options].join(" "));
}
