import { hash } from "node:crypto";
import { storable } from "../platform/postgres/values.ts";
import { isKept, mayBeCardNumber, mayHoldCardNumber } from "./privacy/card-number.ts";

type JsonSource = Readonly<Record<string, unknown>>;

/** What is nested deeper is no content of the service, and would exhaust the stack, here or in Postgres. */
const maxDepth = 100;

/** Thrown for content that cannot be stored; `decode` makes it a reason. */
export class NestedTooDeeply extends Error {}

const nothing: ReadonlySet<string> = new Set();

/**
 * One text for one content, and the very text that Postgres prints of it as `jsonb`, so that stored content is compared
 * without being parsed: shorter keys first, then by their bytes; nulls of objects left out (an absent optional key is
 * null), the keys in `without` left out at the top. What `jsonb` refuses (NUL, lone surrogates) becomes U+FFFD; the
 * exact bytes stay in the inbox. Only own keys count, and `__proto__` is one like any other.
 */
export function canonicalJson(object: JsonSource, without: ReadonlySet<string> = nothing): string {
  return objectJson(object, without, 0, { mayHoldCardNumber: false });
}

/** What is noticed on the way. */
interface Notes {
  /** A card number may stand in a field where anything may stand, or in a key. */
  mayHoldCardNumber: boolean;
}

/** A group's content in its canonical form. */
export interface Content extends Readonly<Notes> {
  json: string;
  /** Whether text that `jsonb` refuses stands in it as U+FFFD: what was received is not all there. */
  isReplaced: boolean;
}

/** `canonicalJson`, with whether it had to replace text and whether card numbers are to be looked for. A U+FFFD that came as such replaces nothing. */
export function canonicalContent(object: JsonSource, without?: ReadonlySet<string>): Content {
  const notes = { mayHoldCardNumber: false };
  const json = objectJson(object, without ?? nothing, 0, notes);
  const isReplaced = json.includes("\ufffd") && holdsRefusedText(object, without);
  return { json, isReplaced, mayHoldCardNumber: notes.mayHoldCardNumber };
}

/** Whether a text or a key, at any depth, is one that `jsonb` refuses. The keys in `without` do not count at the top. */
export function holdsRefusedText(value: unknown, without: ReadonlySet<string> = nothing): boolean {
  if (typeof value === "string") return storable(value) !== value;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, item]) => !without.has(key) && (storable(key) !== key || holdsRefusedText(item)),
  );
}

function objectJson(
  object: JsonSource,
  without: ReadonlySet<string>,
  depth: number,
  notes: Notes,
): string {
  if (depth > maxDepth) throw new NestedTooDeeply();
  const fields = orderedFields(Object.keys(object));
  if (fields === null) return objectJson(withStorableKeys(object), without, depth, notes);
  let json = "";
  for (const field of fields) {
    const { key, label } = field;
    const value = object[key];
    if (value === null || value === undefined || without.has(key)) continue;
    if (field.mayHoldCardNumber) notes.mayHoldCardNumber = true;
    json += `${json === "" ? "" : ", "}${label}${valueJson(value, field, depth, notes)}`;
  }
  return `{${json}}`;
}

/** Of a value that stands, itself or in lists, under this field's key. */
function valueJson(value: unknown, field: Field, depth: number, notes: Notes): string {
  if (typeof value === "string") {
    if (field.isFree && mayHoldCardNumber(value)) notes.mayHoldCardNumber = true;
    return textJson(value);
  }
  if (typeof value === "number") {
    if (field.isFree && mayBeCardNumber(value)) notes.mayHoldCardNumber = true;
    return Number.isFinite(value) ? plainDecimal(value) : "null";
  }
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value !== "object" || value === null) return "null";
  if (!Array.isArray(value)) return objectJson(value as JsonSource, nothing, depth + 1, notes);
  if (depth > maxDepth) throw new NestedTooDeeply();
  return `[${value.map((item) => valueJson(item, field, depth + 1, notes)).join(", ")}]`;
}

interface Field {
  key: string;
  /** The key as it stands before its value. */
  label: string;
  /** Anything may stand in it. */
  isFree: boolean;
  /** The key itself. */
  mayHoldCardNumber: boolean;
}

interface Shape {
  keys: readonly string[];
  fields: readonly Field[];
}

/**
 * The service's objects have few shapes, and sorting keys is what the canonical form would cost most. By how many keys
 * there are: to compare keys with those of a few shapes is a third of what making one text of them costs.
 */
const shapesByLength = new Map<number, Shape[]>();
const maxShapesOfALength = 16;
const maxCharacters = 1_000;
/** Of all shapes together, under 1 MB: senders choose the keys of metadata, and must not fill the memory with them. */
const maxRememberedKeys = 5_000;
let rememberedKeys = 0;

/** How many keys the remembered shapes have together. */
export const rememberedShapeKeys = (): number => rememberedKeys;

function rememberShape(shape: Shape): void {
  const { length } = shape.keys;
  if (shape.keys.join("").length + length > maxCharacters) return;
  // The common shapes are back after a few objects; to know which ones are common would cost more.
  if (rememberedKeys + length > maxRememberedKeys) {
    shapesByLength.clear();
    rememberedKeys = 0;
  }
  const shapes = [shape, ...(shapesByLength.get(length) ?? [])];
  const isFull = shapes.length > maxShapesOfALength;
  if (!isFull) rememberedKeys += length;
  shapesByLength.set(length, isFull ? shapes.slice(0, maxShapesOfALength) : shapes);
}

/** The keys of an object in the order of its canonical form; null where one of them cannot be stored as it is. */
function orderedFields(keys: readonly string[]): readonly Field[] | null {
  const shapes = shapesByLength.get(keys.length) ?? [];
  const known = shapes.find((shape) => isSame(shape.keys, keys));
  if (known !== undefined) return known.fields;
  if (keys.some((key) => storable(key) !== key)) return null;
  const fields = keys.toSorted(byLengthThenBytes).map((key) => ({
    key,
    label: `${textJson(key)}: `,
    isFree: !isKept(key),
    mayHoldCardNumber: mayHoldCardNumber(key),
  }));
  rememberShape({ keys, fields });
  return fields;
}

/** Of as many keys. */
const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.every((key, n) => key === b[n]);

function byLengthThenBytes(a: string, b: string): number {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length - right.length || left.compare(right);
}

/** Keys that become the same when they are made storable: the last one in the order of the old keys stays. */
function withStorableKeys(object: JsonSource): JsonSource {
  const renamed = Object.keys(object)
    .sort()
    .map((key) => [storable(key), object[key]] as const);
  return Object.fromEntries(renamed);
}

// Quotation mark, backslash, control characters, surrogates: all else stands in JSON as it is.
const needsCare = /["\\\u0000-\u001f\ud800-\udfff]/;

const textJson = (text: string): string =>
  needsCare.test(text) ? JSON.stringify(storable(text)) : `"${text}"`;

/** 32 hex digits that stand for the content: equal exactly when the canonical forms are. */
export const contentHash = (json: string): string => hash("sha256", json, "hex").slice(0, 32);

/** A finite number in its shortest digits, without an exponent, as Postgres prints a `numeric` of them. Pure. */
function plainDecimal(value: number): string {
  const text = String(value);
  if (!text.includes("e")) return text;
  const [mantissa = "", exponent = ""] = text.split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "", fraction = ""] = mantissa.slice(sign.length).split(".");
  const digits = whole + fraction;
  // JavaScript writes an exponent only where the point lies outside of the digits.
  const point = whole.length + Number(exponent);
  return point > 0
    ? `${sign}${digits.padEnd(point, "0")}`
    : `${sign}0.${digits.padStart(digits.length - point, "0")}`;
}
