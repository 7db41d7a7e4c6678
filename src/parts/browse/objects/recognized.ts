import type { Knex } from "knex";
import { type ListedCharge, newestOrders, readCharges } from "../../../core/mirror/charges.ts";
import { customerNames } from "../../../core/mirror/customer-names.ts";
import { apartMs, doublesOf } from "../../../core/mirror/double-charges.ts";
import type { ListedObject } from "../../../core/mirror/look-up.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { redacted, shortenedTo } from "../../../platform/redaction.ts";

/** What people recognize an object by, beside what the list has. */
export interface Recognized {
  /** Whether the visitor may see personal data: without it names, items and the digits of cards are null. */
  showsPersons: boolean;
  /** By the customer's id. */
  names: ReadonlyMap<string, string>;
  /** By the order's id: those of the list, and what may be a double of one. */
  charges: ReadonlyMap<string, ListedCharge>;
  /** The newest order of each customer in the list, by the customer's id. */
  newest: ReadonlyMap<string, string>;
}

/** `order`: one beside the list, by its id. A constant number of statements, each by an index. Personal data with `showsPersons`: the access is recorded. */
export async function recognize(
  db: Knex,
  rows: readonly ListedObject[],
  { showsPersons, order = null }: { showsPersons: boolean; order?: string | null },
): Promise<Recognized> {
  const idsOf = (resource: string) => rows.filter((row) => row.resource === resource).map(({ id }) => id);
  const newest = await newestOrders(db, idsOf("customer"));
  const charges = await readCharges(db, [...(order === null ? [] : [order]), ...idsOf("order"), ...newest.values()]);
  const people = showsPersons
    ? await customerNames(
        db,
        rows.flatMap(({ customerId }) => customerId ?? []),
      )
    : new Map();
  return {
    showsPersons,
    names: new Map(Array.from(people, ([id, { name, email }]) => [id, known(name) ?? known(email) ?? ""])),
    charges: showsPersons ? charges : new Map(Array.from(charges, ([id, charge]) => [id, withoutPerson(charge)])),
    newest,
  };
}

const withoutPerson = (charge: ListedCharge): ListedCharge => ({
  ...charge,
  item: null,
  card: { ...charge.card, lastFour: null },
});

/** Null for an empty text, and for what an erasure left. */
export const known = (text: unknown): string | null =>
  typeof text !== "string" || text.trim() === "" || text.includes(redacted) ? null : text;

/** The charge that a row of a list shows: an order, or a customer's newest one. */
export function chargeOf({ charges, newest }: Recognized, { resource, id }: ListedObject): ListedCharge | null {
  const order = resource === "order" ? id : resource === "customer" ? newest.get(id) : undefined;
  return order === undefined ? null : (charges.get(order) ?? null);
}

/** `Black tea +2`; null where nothing is known of it. */
export function itemsInWords({ item, items }: Pick<ListedCharge, "item" | "items">): string | null {
  const name = known(item);
  if (name === null) return null;
  return items > 1 ? `${shown(name)} +${items - 1}` : shown(name);
}

/** `visa 4242`; null where nothing is known of it. */
export function cardInWords({ card: { brand, lastFour } }: Pick<ListedCharge, "card">): string | null {
  const words = [known(brand), known(lastFour)].flatMap((word) => word ?? []);
  return words.length === 0 ? null : shown(words.join(" "));
}

/** The charge that looks most like this one made twice, and how it looks. */
export interface Double {
  other: ListedCharge;
  /** `Same amount and card, 2 s apart`. */
  words: string;
}

export function nearestDouble({ charges }: Pick<Recognized, "charges">, charge: ListedCharge): Double | null {
  const [other, ...more] = doublesOf(charge, Array.from(charges.values()));
  if (other === undefined) return null;
  const isCardKnown = [charge, other].every(({ card }) => card.id !== null || card.brand !== null);
  const words = `Same amount${isCardKnown ? " and card" : ""}, ${apartInWords(apartMs(charge, other))} apart`;
  return { other, words: more.length === 0 ? words : `${words}, and ${more.length} more` };
}

/** `2 s`, `1 min 5 s`. */
function apartInWords(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 1) return "less than 1 s";
  const minutes = Math.floor(seconds / 60);
  return [minutes > 0 && `${minutes} min`, seconds % 60 > 0 && `${seconds % 60} s`].filter(Boolean).join(" ");
}

/** Outside text for a title or a sentence: one line, short, and without marks that turn the writing around. */
export const shown = (text: string): string =>
  withoutControls(shortenedTo(text, 80)).replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** First and last name; null where neither is known, or the visitor may not see them. */
export function nameIn(values: ReadonlyMap<string, unknown>): string | null {
  const names = ["first_name", "last_name"].flatMap((field) => known(values.get(field)) ?? []);
  return names.length === 0 ? null : shown(names.join(" "));
}
