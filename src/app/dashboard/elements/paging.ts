import { type Html, html } from "../../../platform/html.ts";

/** The rows of a page, and where the next one begins. */
export interface PageOf<Row> {
  rows: Row[];
  /** The value of `before` for the older rows; null where there are none. */
  older: string | null;
}

/** Takes one row more than a page has, which shows that there are older ones. */
export function pageOf<Row>(rows: readonly Row[], size: number, keyOf: (row: Row) => string | number): PageOf<Row> {
  const shown = rows.slice(0, size);
  const last = shown.at(-1);
  const hasOlder = rows.length > size && last !== undefined;
  return { rows: shown, older: hasOlder ? String(keyOf(last)) : null };
}

/** A list's words for its pages, and the parameter that names where one begins. */
interface PagerWords {
  parameter: string;
  first: string;
  next: string;
}

const newestFirst: PagerWords = { parameter: "before", first: "Newest", next: "Older" };
/** For a list in another order than the newest first. */
export const oldestFirst: PagerWords = {
  parameter: "after",
  first: "First page",
  next: "Next page",
};

/** Links to the first and to the next rows, with the filters of this view; `next`: where they begin. */
export function pager(
  path: string,
  query: URLSearchParams,
  next: string | null,
  words: PagerWords = newestFirst,
): Html | null {
  const isFirst = !query.has(words.parameter);
  if (isFirst && next === null) return null;
  const at = (value: string | null) => withQuery(path, query, { [words.parameter]: value });
  return html`<nav class="pager" aria-label="Pages of the list">
    ${isFirst ? html`<span></span>` : html`<a href="${at(null)}">${words.first}</a>`}
    ${next !== null && html`<a rel="next" href="${at(next)}">${words.next}</a>`}
  </nav>`;
}

/** The address of the same view with some parameters changed; null removes one. */
export function withQuery(
  path: string,
  query: URLSearchParams,
  changes: Readonly<Record<string, string | null>>,
): string {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) changed.delete(name);
    else changed.set(name, value);
  }
  for (const name of Array.from(changed.keys())) {
    if (changed.get(name) === "") changed.delete(name);
  }
  const text = changed.toString();
  return text === "" ? path : `${path}?${text}`;
}
