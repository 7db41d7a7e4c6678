import { isWireId } from "../../contract/wire-types.ts";
import { canonicalTimestamp } from "../../contract/timestamp.ts";

/**
 * The form of a key's values. A text survives an erasure only in the form of its key's kind (`hasForm`), so that a name
 * or an address in the wrong place does not.
 */
export type SurvivingForm =
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

/** Card brands with a space in their name. */
const longBrands =
  /^(?:american express|diners club(?: international)?|union pay|china unionpay|carte(?:s)? bancaires?)$/i;

export const hasForm: Readonly<Record<SurvivingForm, (text: string) => boolean>> = {
  // An id of the mirror's own objects, in any form: rows are found by it.
  id: isWireId,
  reference: (text) => /^[\w.:/+=|-]{1,255}$/.test(text),
  // A word of the interface, in lower case, such as `partially_refunded` or `order.created`.
  word: (text) => /^[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*$/.test(text) && text.length <= 40,
  // A code that the merchant chose: letters and digits in groups, such as `ZXYQF2JM` or `SPRING-2026`.
  code: (text) => /^[A-Za-z0-9]+(?:[_.:-][A-Za-z0-9]+)*$/.test(text) && text.length <= 50,
  // A processor's result code, such as `05`, `M` or `R1`.
  result: (text) => /^(?:[A-Za-z]{1,3}|[A-Za-z]{0,2}\d{1,6})$/.test(text),
  currency: (text) => /^[A-Za-z]{3}$/.test(text),
  brand: (text) => /^[A-Za-z][A-Za-z_-]{1,19}$/.test(text) || longBrands.test(text),
  country: (text) => /^[A-Za-z]{2,3}$/.test(text),
  number: (text) => /^-?\d{1,20}(?:\.\d{1,10})?$/.test(text),
  time: (text) => canonicalTimestamp(text) !== null || /^\d{4}-\d{2}-\d{2}$/.test(text),
  flag: () => false,
  object: () => false,
};

/** Kinds whose JSON numbers survive. Under another key, a number may be part of a card or phone number. */
export const formsWithNumbers: ReadonlySet<SurvivingForm> = new Set(["id", "word", "code", "result", "number", "time"]);

/** For each kind, the keys, separated by spaces, whose values survive an erasure if they have the form of the kind. */
export type SurvivingKeys = Readonly<Partial<Record<SurvivingForm, string>>>;
