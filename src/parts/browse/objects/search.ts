import type { Knex } from "knex";
import { findCustomers } from "../../../core/mirror/find-customers.ts";
import {
  type ListedObject,
  findByEmail,
  findById,
  findByIdStart,
  findByLastFour,
  findByOrderNumber,
} from "../../../core/mirror/look-up.ts";
import { listEventsOf } from "../../../core/inbox/queries.ts";

/** A parsed search. */
export interface SearchText {
  text: string;
  /** With the surrounding marks: an id may begin or end with one. */
  typed: string;
  /** What the text can only be; null: a number, an id or a name. */
  is: "e-mail address" | "last four digits" | "event" | null;
}

/** What a personal search was by. It takes person:read and is recorded. */
export type SearchedBy = "e-mail address" | "last four digits" | "name";

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
  if (text.includes("@")) return { text, typed: whole, is: "e-mail address" };
  if (/^\d{4}$/.test(text)) return { text, typed: whole, is: "last four digits" };
  const event = /^event\s{1,9}#?(\d{1,15})$/i.exec(text)?.[1];
  if (event !== undefined) return { text: event, typed: whole, is: "event" };
  return { text: text.replace(/^#\s?/, ""), typed: whole, is: null };
}

export interface SearchOptions {
  /** Without it, four digits are an order number only, and no address and no name finds a customer. */
  mayFindPersons: boolean;
  /** Objects after the one with this id. */
  after: string | null;
  limit: number;
}

export interface Found {
  rows: readonly ListedObject[];
  /** Null: nobody was searched. */
  by: SearchedBy | null;
  /** The only thing with this number. */
  event: number | null;
  /** Whether too many customers match, so that only some of them were looked at. */
  isCut: boolean;
}

const found = (rows: readonly ListedObject[], by: SearchedBy | null = null): Found => ({
  rows,
  by,
  event: null,
  isCut: false,
});

/** Exact ids and numbers come first; where one matches, no person is searched by name. Each statement is bounded. */
export async function search(db: Knex, wanted: SearchText, options: SearchOptions): Promise<Found> {
  const { text, typed, is } = wanted;
  const { mayFindPersons, after, limit } = options;
  if (typed === "") return found([]);
  // Only marks: no other field has such a value.
  if (text === "") return found(await findById(db, typed));
  if (is === "event") return { ...found([]), event: await eventNumbered(db, text) };
  if (is === "e-mail address") return mayFindPersons ? byAddress(db, text, options) : found([]);
  const exact = after === null ? await byIdOrNumber(db, wanted, limit) : [];
  if (is === "last four digits" && mayFindPersons) {
    const ofCard = await findByLastFour(db, text, { after, limit });
    const ids = new Set(exact.map(({ id }) => id));
    return found([...exact, ...ofCard.filter(({ id }) => !ids.has(id))].slice(0, limit), "last four digits");
  }
  if (exact.length > 0 || is !== null) return found(exact);
  const event = /^\d{1,15}$/.test(text) ? await eventNumbered(db, text) : null;
  if (event !== null) return { ...found([]), event };
  const begun = after === null ? await findByIdStart(db, text, limit) : [];
  if (begun.length > 0 || !mayFindPersons) return found(begun.slice(0, limit - 1));
  const { rows, isCut } = await findCustomers(db, { words: text, address: null }, { after, limit });
  return { rows, by: "name", event: null, isCut };
}

async function byIdOrNumber(db: Knex, { text, typed }: SearchText, limit: number): Promise<ListedObject[]> {
  const byId = [...(typed === text ? [] : await findById(db, typed)), ...(await findById(db, text))];
  const ids = new Set(byId.map(({ id }) => id));
  return [...byId, ...(await findByOrderNumber(db, text, limit)).filter(({ id }) => !ids.has(id))];
}

/** The whole address; else the beginning of one, for which the words before its @ are in an index. */
async function byAddress(db: Knex, text: string, { after, limit }: SearchOptions): Promise<Found> {
  const whole = after === null ? await findByEmail(db, text, limit) : [];
  if (whole.length > 0) return found(whole, "e-mail address");
  const address = text.toLowerCase();
  const words = address.slice(0, address.indexOf("@"));
  const { rows, isCut } = await findCustomers(db, { words, address }, { after, limit });
  return { rows, by: "e-mail address", event: null, isCut };
}

async function eventNumbered(db: Knex, text: string): Promise<number | null> {
  const seq = Number(text);
  return (await listEventsOf(db, [seq])).length > 0 ? seq : null;
}
