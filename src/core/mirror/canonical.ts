import { hash } from "node:crypto";
import { storable } from "../../platform/postgres/values.ts";
import { isNeverMasked, numberMayBeCard, mayHoldCardNumber } from "./privacy/card-number.ts";

type JsonSource = Readonly<Record<string, unknown>>;

/** The service never nests deeper than this. Deeper content would exhaust the stack, here or in Postgres. */
const maxDepth = 100;

/** Thrown for content that is nested too deeply to be stored. `decode` turns it into a reason. */
export class NestedTooDeeply extends Error {
  constructor() {
    super("the content is nested too deeply to be stored");
  }
}

const nothing: ReadonlySet<string> = new Set();

/**
 * The canonical text of an object: equal contents have equal texts. It is exactly what Postgres prints for the content
 * as `jsonb`, so stored content is compared without being parsed. Shorter keys come first, then keys by their bytes.
 * Null fields are left out, since an absent optional key means null. The keys in `without` are left out at the top
 * level. Text that `jsonb` refuses (NUL, lone surrogates) becomes U+FFFD; the inbox keeps the exact bytes. Only own
 * keys count, and `__proto__` is a key like any other.
 */
export function canonicalJson(object: JsonSource, without: ReadonlySet<string> = nothing): string {
  return objectJson(object, without, 0, { mayHoldCardNumber: false });
}

/** Findings made while the canonical text is written: a second pass would cost too much. */
interface Notes {
  /** A key, or a field of free content, may contain a card number. */
  mayHoldCardNumber: boolean;
}

/** A group's content in its canonical form. */
export interface Content extends Readonly<Notes> {
  json: string;
  /** Whether text that `jsonb` refuses was replaced by U+FFFD, so part of the received text is missing. */
  isReplaced: boolean;
}

/**
 * `canonicalJson`, and whether it replaced text and whether the content may hold card numbers. A U+FFFD that the
 * service sent itself does not count as replaced.
 */
export function canonicalContent(object: JsonSource, without?: ReadonlySet<string>): Content {
  const notes = { mayHoldCardNumber: false };
  const json = objectJson(object, without ?? nothing, 0, notes);
  const isReplaced = json.includes("\ufffd") && holdsRefusedText(object, without);
  return { json, isReplaced, mayHoldCardNumber: notes.mayHoldCardNumber };
}

/** The same for a list that stands in the field `key`. */
export function canonicalList(key: string, items: readonly unknown[]): Content {
  const notes = { mayHoldCardNumber: false };
  const [field] = orderedFields([key]) ?? [];
  if (field === undefined) throw new TypeError("the key of a list must be storable");
  const json = valueJson(items, field, 0, notes);
  const isReplaced = json.includes("\ufffd") && holdsRefusedText(items);
  return { json, isReplaced, mayHoldCardNumber: notes.mayHoldCardNumber };
}

/** Whether `jsonb` refuses a text or a key, at any depth. The keys in `without` are skipped at the top level. */
export function holdsRefusedText(value: unknown, without: ReadonlySet<string> = nothing): boolean {
  if (typeof value === "string") return storable(value) !== value;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, item]) => !without.has(key) && (storable(key) !== key || holdsRefusedText(item)),
  );
}

function objectJson(object: JsonSource, without: ReadonlySet<string>, depth: number, notes: Notes): string {
  if (depth > maxDepth) throw new NestedTooDeeply();
  const fields = orderedFields(Object.keys(object));
  if (fields === null) return objectJson(withStorableKeys(object), without, depth, notes);
  const isWhole = without.size === 0;
  let json = "{";
  for (const field of fields) {
    const value = object[field.key];
    if (value === null || value === undefined || (!isWhole && without.has(field.key))) continue;
    if (field.mayHoldCardNumber) notes.mayHoldCardNumber = true;
    json += json.length === 1 ? field.label : field.nextLabel;
    json += valueJson(value, field, depth, notes);
  }
  return `${json}}`;
}

/** Canonical text of a field's value, or of an element of a list in that field. */
function valueJson(value: unknown, field: Field, depth: number, notes: Notes): string {
  if (typeof value === "string") {
    if (field.isFree && mayHoldCardNumber(value)) notes.mayHoldCardNumber = true;
    return textJson(value);
  }
  if (typeof value === "number") {
    if (field.isFree && numberMayBeCard(value)) notes.mayHoldCardNumber = true;
    return Number.isFinite(value) ? plainDecimal(value) : "null";
  }
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value !== "object" || value === null) return "null";
  if (!Array.isArray(value)) return objectJson(value as JsonSource, nothing, depth + 1, notes);
  if (depth > maxDepth) throw new NestedTooDeeply();
  let json = "[";
  for (const item of value as readonly unknown[]) {
    if (json.length > 1) json += ", ";
    json += valueJson(item, field, depth + 1, notes);
  }
  return `${json}]`;
}

interface Field {
  key: string;
  /** The key as JSON, with the colon that precedes its value. */
  label: string;
  nextLabel: string;
  /** The field may hold any content, card numbers included. */
  isFree: boolean;
  /** The key itself may contain a card number. */
  mayHoldCardNumber: boolean;
}

interface Shape {
  keys: readonly string[];
  fields: readonly Field[];
}

/**
 * Remembered key orders. Sorting keys would be the most expensive part of the canonical form, and the service's objects
 * have few shapes. They are grouped by their number of keys: comparing the keys with a few shapes costs a third of
 * joining them into one lookup text.
 */
const shapesByLength = new Map<number, Shape[]>();
const noShapes: readonly Shape[] = [];
const maxShapesPerLength = 16;
/** Objects with longer keys than this together are not remembered. */
const maxKeyCharacters = 1_000;
/** Over all shapes, under 1 MB: senders choose the keys of metadata and must not be able to fill the memory. */
const maxRememberedKeys = 5_000;
let rememberedKeys = 0;

/** Total number of keys in the remembered shapes. */
export const rememberedShapeKeys = (): number => rememberedKeys;

function rememberShape(shape: Shape): void {
  const { length } = shape.keys;
  if (shape.keys.join("").length + length > maxKeyCharacters) return;
  // Forgetting all is cheaper than tracking which shapes are common: those are remembered again after a few objects.
  if (rememberedKeys + length > maxRememberedKeys) {
    shapesByLength.clear();
    rememberedKeys = 0;
  }
  const shapes = [shape, ...(shapesByLength.get(length) ?? [])];
  const isFull = shapes.length > maxShapesPerLength;
  if (!isFull) rememberedKeys += length;
  shapesByLength.set(length, isFull ? shapes.slice(0, maxShapesPerLength) : shapes);
}

/** The keys of an object in canonical order; null if one of them cannot be stored unchanged. */
function orderedFields(keys: readonly string[]): readonly Field[] | null {
  for (const shape of shapesByLength.get(keys.length) ?? noShapes) {
    if (isSame(shape.keys, keys)) return shape.fields;
  }
  if (keys.some((key) => storable(key) !== key)) return null;
  const fields = keys.toSorted(byLengthThenBytes).map((key) => ({
    key,
    label: `${textJson(key)}: `,
    nextLabel: `, ${textJson(key)}: `,
    isFree: !isNeverMasked(key),
    mayHoldCardNumber: mayHoldCardNumber(key),
  }));
  rememberShape({ keys, fields });
  return fields;
}

/** Expects lists of equal length. */
function isSame(a: readonly string[], b: readonly string[]): boolean {
  for (let n = 0; n < a.length; n++) if (a[n] !== b[n]) return false;
  return true;
}

function byLengthThenBytes(a: string, b: string): number {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length - right.length || left.compare(right);
}

/** Makes all keys storable. If two become the same, the last in the order of the original keys wins. */
function withStorableKeys(object: JsonSource): JsonSource {
  const renamed = Object.keys(object)
    .sort()
    .map((key) => [storable(key), object[key]] as const);
  return Object.fromEntries(renamed);
}

// Quotation mark, backslash, control characters, surrogates. All other text is its own JSON, and most text is.
const mayNeedEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

const textJson = (text: string): string => (mayNeedEscape.test(text) ? JSON.stringify(storable(text)) : `"${text}"`);

/** 128 bits of SHA-256 as 32 hex digits. Equal canonical texts have equal hashes. */
export const contentHash = (json: string): string => hash("sha256", json, "hex").slice(0, 32);

/** A finite number in its shortest digits without an exponent, as Postgres prints the `numeric`. */
function plainDecimal(value: number): string {
  const text = String(value);
  if (!text.includes("e")) return text;
  const [mantissa = "", exponent = ""] = text.split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "", fraction = ""] = mantissa.slice(sign.length).split(".");
  const digits = whole + fraction;
  // JavaScript writes an exponent only if the decimal point lies outside the digits.
  const point = whole.length + Number(exponent);
  return point > 0 ? `${sign}${digits.padEnd(point, "0")}` : `${sign}0.${digits.padStart(digits.length - point, "0")}`;
}
