import { isWireId } from "../service/resources/wire-types.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";
import { storable } from "../platform/storable-text.ts";

/**
 * Columns are projections for people and reports: a field of an unexpected type is null there and stays as it
 * came in `data`. What must be readable (id, version, money) was checked before.
 */
type Source = Readonly<Record<string, unknown>>;

export function textColumn(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? storable(value) : null;
}

/** Of a status, a type or a currency: twice the longest that is known. */
const maxCodeLength = 40;

/**
 * A status, a type or a currency. The service may make up others, and they stand in an index beside two ids: so
 * long as here, the widest characters leave room. All of it stands in `data`.
 */
export function codeColumn(source: Source, key: string): string | null {
  const text = textColumn(source, key);
  if (text === null || text.length <= maxCodeLength) return text;
  return Array.from(text).slice(0, maxCodeLength).join("");
}

/** The same in SQL, of a text expression. */
export const codeSql = (text: string): string => `left(${text}, ${maxCodeLength})`;

/** Ids are indexed: what is none, or too long for an index, is null. */
export function idColumn(source: Source, key: string): string | null {
  const value = source[key];
  return isWireId(value) ? value : null;
}

const maxInteger = 2_147_483_647;

/** Fits an `integer` column. */
export function integerColumn(source: Source, key: string): number | null {
  const value = source[key];
  return Number.isInteger(value) && Math.abs(value as number) <= maxInteger
    ? (value as number)
    : null;
}

/** Minor units, exact. */
export function moneyColumn(source: Source, key: string): number | null {
  const value = source[key];
  return Number.isSafeInteger(value) ? (value as number) : null;
}

export function timeColumn(source: Source, key: string): string | null {
  const value = source[key];
  return typeof value === "string" ? canonicalTimestamp(value) : null;
}

/** A nested object, or an empty one. */
export function objectAt(source: Source, key: string): Source {
  const value = source[key];
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Source)
    : {};
}

/** The card as orders, transactions and subscriptions summarise it. */
export function cardColumns(source: Source) {
  const card = objectAt(source, "payment_method");
  return {
    payment_method_id: idColumn(card, "id"),
    card_brand: textColumn(card, "card_brand"),
    card_last_four: textColumn(card, "card_last_four"),
  };
}
