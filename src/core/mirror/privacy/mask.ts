import { storable } from "../../../platform/postgres/values.ts";
import { NestedTooDeeply } from "../canonical.ts";
import { isNeverMasked, maskCardNumbers, numberMayBeCard, mayHoldCardNumber } from "./card-number.ts";
import { hasRepeatedKeys } from "./repeated-keys.ts";

/** An event's bytes and their parsed body; `body` is undefined if they are no JSON. */
type Body = { raw: Buffer; body: unknown };

/**
 * Masks the card numbers in a stored body. The result is JSON, so that it can be replayed. If the body is no JSON or
 * nested too deeply to search, only the numbers in its bytes are replaced. Null if there are none.
 */
export function maskBody({ raw, body }: Body): Masked<Buffer> | null {
  if (body === undefined) return maskText(raw);
  if (!mayHoldCardNumbers(body)) return maskHidden(raw, body);
  try {
    const { value, paths } = maskFields(body);
    if (paths.length === 0) return maskHidden(raw, body);
    return { value: Buffer.from(JSON.stringify(value)), paths };
  } catch (error) {
    if (!(error instanceof NestedTooDeeply)) throw error;
    return maskText(raw);
  }
}

/**
 * A card number under a repeated key is only in the bytes, since the parser keeps the last value. The parsed body
 * replaces them.
 */
function maskHidden(raw: Buffer, body: unknown): Masked<Buffer> | null {
  if (!mayHoldCardNumber(raw.toString("latin1")) || !hasRepeatedKeys(raw, body)) return null;
  const masked = maskText(raw);
  return masked === null ? null : { ...masked, value: Buffer.from(JSON.stringify(body)) };
}

function maskText(raw: Buffer): Masked<Buffer> | null {
  const text = raw.toString("latin1");
  const masked = maskCardNumbers(text);
  return masked === text ? null : { value: Buffer.from(masked, "latin1"), paths: ["(body)"] };
}

/** A JSON value without card numbers. */
export interface Masked<T> {
  value: T;
  /** The masked fields, such as `metadata.note`; never their values. Empty if `value` is unchanged. */
  paths: readonly string[];
}

/** The deepest nesting searched: deeper than stored content may be (canonical.ts), and less than the stack allows. */
const maxDepth = 200;

/**
 * Masks the card numbers in the texts of a JSON value, at any depth. Only a text's own key decides whether it is
 * masked, so an object is masked alike inside an event and by itself. Numbers under free keys and the keys themselves
 * are searched, too. Pure, idempotent. Throws `NestedTooDeeply`.
 */
export function maskFields<T>(value: T): Masked<T> {
  const paths = new Set<string>();
  const masked = maskValue({ value, key: "", path: [], paths }) as T;
  return paths.size === 0 ? { value, paths: [] } : { value: masked, paths: [...paths] };
}

/**
 * Whether `maskFields` may find something. Runs for every event, so a key is classified only if its value looks like a
 * card number. Also true for a value that is nested too deeply to search.
 */
export function mayHoldCardNumbers(value: unknown, key = "", depth = 0): boolean {
  if (typeof value === "string") return mayHoldCardNumber(value) && !isNeverMasked(key);
  if (typeof value === "number") return numberMayBeCard(value) && !isNeverMasked(key);
  if (typeof value !== "object" || value === null) return false;
  if (depth > maxDepth) return true;
  if (Array.isArray(value)) return value.some((item) => mayHoldCardNumbers(item, key, depth + 1));
  for (const name of Object.keys(value)) {
    if (mayHoldCardNumber(name)) return true;
    const item = (value as Record<string, unknown>)[name];
    if (mayHoldCardNumbers(item, name, depth + 1)) return true;
  }
  return false;
}

interface Place {
  value: unknown;
  /** The nearest key; elements of an array have the array's key. */
  key: string;
  path: readonly string[];
  /** Paths of everything masked so far. */
  paths: Set<string>;
  depth?: number;
}

function maskValue({ value, key, path, paths, depth = 0 }: Place): unknown {
  if (typeof value === "string" || typeof value === "number") {
    if (isNeverMasked(key)) return value;
    const text = String(value);
    const masked = maskCardNumbers(text);
    if (masked === text) return value;
    paths.add(named(path));
    return masked;
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) throw new NestedTooDeeply();
  if (Array.isArray(value)) {
    return value.map((item: unknown) => maskValue({ value: item, key, path, paths, depth: depth + 1 }));
  }
  const fields = Object.keys(value).map((name) => ({ name, masked: maskCardNumbers(name) }));
  // Two masked keys may be equal: then the last in sorted order wins, whatever their order in the body.
  if (fields.some(({ name, masked }) => masked !== name)) {
    fields.sort((a, b) => (a.name < b.name ? -1 : 1));
  }
  return Object.fromEntries(
    fields.map(({ name, masked }) => {
      const at = [...path, masked === name ? name : "(key)"];
      if (masked !== name) paths.add(named(at));
      const item = (value as Record<string, unknown>)[name];
      return [masked, maskValue({ value: item, key: name, path: at, paths, depth: depth + 1 })];
    }),
  );
}

const maxSegments = 6;
const maxSegmentLength = 60;

/** A path appears in messages, and its keys may be any text, so it is shortened and made storable. */
const named = (path: readonly string[]): string =>
  path
    .slice(0, maxSegments)
    .map((key) => storable(key.slice(0, maxSegmentLength)))
    .join(".");
