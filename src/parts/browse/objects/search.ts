import type { Knex } from "knex";
import {
  type CardOrder,
  type ListedObject,
  findByEmail,
  findById,
  findByLastFour,
  findByOrderNumber,
} from "../../../core/mirror/look-up.ts";

/** A parsed search: the typed text is an address, may be a card's end, or is a number or an id. */
export interface SearchText {
  text: string;
  /** With the surrounding marks: an id may begin or end with one. */
  typed: string;
  /** A personal search takes person:read and is recorded. */
  personal: "e-mail address" | "last four digits" | null;
}

/** Characters around a pasted text: blanks, quotation marks, the ends of a sentence. */
const opening = /[\s"'`“”‘’«»<(]/u;
const closing = /[\s"'`“”‘’«»>),.;]/u;

/** One character after the other: an expression for the end of a long text would start over at each. */
function withoutMarks(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && opening.test(text.charAt(from))) from += 1;
  while (from < to && closing.test(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

export function readSearch(typed: string): SearchText {
  const whole = typed.trim().slice(0, 255);
  const text = withoutMarks(typed.slice(0, 1_000)).slice(0, 255);
  if (text.includes("@")) return { text, typed: whole, personal: "e-mail address" };
  if (/^\d{4}$/.test(text)) return { text, typed: whole, personal: "last four digits" };
  return { text: text.replace(/^#/, ""), typed: whole, personal: null };
}

export interface SearchOptions {
  mayFindPersons: boolean;
  /** Objects after the one with this id. */
  after: string | null;
  limit: number;
}

/** Without `mayFindPersons`, four digits are an order number only, and an address finds no customer. */
export async function search(
  db: Knex,
  { text, typed, personal }: SearchText,
  { mayFindPersons, after, limit }: SearchOptions,
): Promise<(ListedObject | CardOrder)[]> {
  if (typed === "") return [];
  // Only marks: no other field has such a value.
  if (text === "") return findById(db, typed);
  if (personal === "e-mail address") return mayFindPersons ? findByEmail(db, text, limit) : [];
  const byName =
    after === null
      ? [
          ...(typed === text ? [] : await findById(db, typed)),
          ...(await findById(db, text)),
          ...(await findByOrderNumber(db, text, limit)),
        ]
      : [];
  if (personal === null || !mayFindPersons) return byName;
  return [...byName, ...(await findByLastFour(db, text, { after, limit }))].slice(0, limit);
}
