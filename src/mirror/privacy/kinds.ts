import { isWireId } from "../../contract/wire-types.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";

/** The form that a text must have to survive an erasure under a key. Anything that could be a name or address fails. */
export type Kind =
  | "id"
  | "reference"
  | "word"
  | "code"
  | "result"
  | "currency"
  | "brand"
  | "country"
  | "number"
  | "time"
  | "flag"
  | "object";

/** Card brands that are spelt with a blank. */
const longBrands =
  /^(?:american express|diners club(?: international)?|union pay|china unionpay|carte(?:s)? bancaires?)$/i;

export const isText: Readonly<Record<Kind, (text: string) => boolean>> = {
  // Of the mirror's own objects, and so whatever the service says: rows are found by it.
  id: isWireId,
  reference: (text) => /^[\w.:/+=|-]{1,255}$/.test(text),
  // Of the interface: small letters, such as `partially_refunded` or `order.created`.
  word: (text) => /^[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*$/.test(text) && text.length <= 40,
  // Of the merchant: letters and digits in groups, such as `ZXYQF2JM` or `SPRING-2026`.
  code: (text) => /^[A-Za-z0-9]+(?:[_.:-][A-Za-z0-9]+)*$/.test(text) && text.length <= 50,
  // Of a processor.
  result: (text) => /^(?:[A-Za-z]{1,3}|[A-Za-z]{0,2}\d{1,6})$/.test(text),
  currency: (text) => /^[A-Za-z]{3}$/.test(text),
  brand: (text) => /^[A-Za-z][A-Za-z_-]{1,19}$/.test(text) || longBrands.test(text),
  country: (text) => /^[A-Za-z]{2,3}$/.test(text),
  number: (text) => /^-?\d{1,20}(?:\.\d{1,10})?$/.test(text),
  time: (text) => canonicalTimestamp(text) !== null || /^\d{4}-\d{2}-\d{2}$/.test(text),
  flag: () => false,
  object: () => false,
};

/** A number under another key may be a part of a card's, or a telephone's. */
export const hasNumbers: ReadonlySet<Kind> = new Set([
  "id",
  "word",
  "code",
  "result",
  "number",
  "time",
]);

/** By kind: keys, separated by blanks, whose values stay if they have the form of the kind. */
export type Stays = Readonly<Partial<Record<Kind, string>>>;
