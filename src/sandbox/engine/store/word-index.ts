import { type FewRows, isIndex, withRow, withoutRow } from "./group.ts";
import {
  type Row,
  type RowIndex,
  type SortedIndex,
  ascending,
  createSortedIndex,
  insertSorted,
  removeSorted,
} from "./sorted-index.ts";

/** Which rows hold which words of a text: what a full-text search asks. */
export interface WordIndex<T> {
  add(row: Row<T>): void;
  /** Asked before the row's value changes. */
  remove(row: Row<T>): void;
  /** The rows of every word that begins so; null when these are too many words to go through. */
  startingWith(beginning: string): WordRows<T> | null;
  /** Whether each beginning is that of a word of the row's text. */
  holds(row: Row<T>, beginnings: readonly string[]): boolean;
}

export interface WordRows<T> {
  /** At least as many as there are: a row that holds two such words counts twice. */
  size: number;
  /** Each once, in no particular order. */
  rows: () => Iterable<Row<T>>;
  /** In order of creation, where one word has them all. */
  ordered: RowIndex<T> | undefined;
}

interface Word<T> {
  readonly text: string;
  rows: FewRows<T>;
}

/** So many words have so many rows that a walk meets enough of them soon. */
const mostWords = 4000;

/** What stands between words: white space and the punctuation of ASCII, as in addresses. */
const wordPattern = /[^\s!-/:-@[-`{-~]+/g;
const separator = /[\s!-/:-@[-`{-~]/;

/** The words of a text, in lower case. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(wordPattern) ?? [];
}

export function createWordIndex<T>(textOf: (record: T) => string): WordIndex<T> {
  const words = createSortedIndex<Word<T>>((a, b) =>
    a.text < b.text ? -1 : a.text > b.text ? 1 : 0,
  );

  return {
    add(row) {
      for (const text of new Set(wordsOf(textOf(row.value)))) addTo(words, text, row);
    },
    remove(row) {
      for (const text of new Set(wordsOf(textOf(row.value)))) removeFrom(words, text, row);
    },
    startingWith(beginning) {
      const found: Word<T>[] = [];
      for (const word of ascending(words, ({ text }) => text >= beginning)) {
        if (!word.text.startsWith(beginning)) break;
        if (found.length === mostWords) return null;
        found.push(word);
      }
      const [only] = found;
      return {
        size: found.reduce((sum, { rows }) => sum + (isIndex(rows) ? rows.size : 1), 0),
        rows: () => (found.length === 1 ? rowsOf(found) : new Set(rowsOf(found))),
        ordered: found.length === 1 && only && isIndex(only.rows) ? only.rows : undefined,
      };
    },
    holds(row, beginnings) {
      const text = textOf(row.value).toLowerCase();
      return beginnings.every((beginning) => hasWord(text, beginning));
    },
  };
}

function addTo<T>(words: SortedIndex<Word<T>>, text: string, row: Row<T>): void {
  const known = wordAt(words, text);
  if (known === undefined) insertSorted(words, { text, rows: row });
  else known.rows = withRow(known.rows, row);
}

function removeFrom<T>(words: SortedIndex<Word<T>>, text: string, row: Row<T>): void {
  const known = wordAt(words, text);
  if (known === undefined) return;
  if (withoutRow(known.rows, row) === undefined) removeSorted(words, known);
}

function wordAt<T>(words: SortedIndex<Word<T>>, text: string): Word<T> | undefined {
  const [first] = ascending(words, (word) => word.text >= text);
  return first?.text === text ? first : undefined;
}

function* rowsOf<T>(words: readonly Word<T>[]): Iterable<Row<T>> {
  for (const { rows } of words) {
    if (isIndex(rows)) yield* ascending(rows);
    else yield rows;
  }
}

function hasWord(text: string, beginning: string): boolean {
  for (let at = text.indexOf(beginning); at >= 0; at = text.indexOf(beginning, at + 1)) {
    if (at === 0 || separator.test(text.charAt(at - 1))) return true;
  }
  return false;
}
