import { storable } from "../../platform/postgres/values.ts";
import { NestedTooDeeply } from "../canonical.ts";
import { isKept, maskCardNumbers, mayBeCardNumber, mayHoldCardNumber } from "./card-number.ts";
import { hasRepeatedKeys } from "./repeated-keys.ts";

/** What an event's bytes say; undefined where they are no JSON. */
type Body = { raw: Buffer; body: unknown };

/**
 * A stored body without card numbers, as JSON again so that it can be replayed; of what is no JSON, or nested too deeply
 * to be looked through, the bytes around them stay. Null where there are none. Pure.
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

/** A card number under a key that is said again is in the bytes alone: what the body says stays, the rest goes. */
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
  /** The fields in which some stood, as `metadata.note`; never their values. Empty: `value` is what was given. */
  paths: readonly string[];
}

/** How deep is looked. More than the content of any state may have (canonical.ts), less than exhausts the stack. */
const maxDepth = 200;

/**
 * Masks the card numbers in the texts of a JSON value, at any depth: by the key that a text stands under, so that an
 * object is masked alike inside an event and by itself. A number under a free key counts as its digits, and a key
 * is a text too. Pure, idempotent; throws `NestedTooDeeply`.
 */
export function maskFields<T>(value: T): Masked<T> {
  const paths = new Set<string>();
  const masked = maskValue({ value, key: "", path: [], paths }) as T;
  return paths.size === 0 ? { value, paths: [] } : { value: masked, paths: [...paths] };
}

/**
 * Whether `maskFields` may find something: for every event, so it looks at keys only where a text asks for it. True, too,
 * of what is nested too deeply to be looked through.
 */
export function mayHoldCardNumbers(value: unknown, key = "", depth = 0): boolean {
  if (typeof value === "string") return mayHoldCardNumber(value) && !isKept(key);
  if (typeof value === "number") return mayBeCardNumber(value) && !isKept(key);
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
  /** The nearest: an array's elements stand under the array's. */
  key: string;
  path: readonly string[];
  /** Of all that was masked so far. */
  paths: Set<string>;
  depth?: number;
}

function maskValue({ value, key, path, paths, depth = 0 }: Place): unknown {
  if (typeof value === "string" || typeof value === "number") {
    if (isKept(key)) return value;
    const text = String(value);
    const masked = maskCardNumbers(text);
    if (masked === text) return value;
    paths.add(named(path));
    return masked;
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) throw new NestedTooDeeply();
  if (Array.isArray(value)) {
    return value.map((item: unknown) =>
      maskValue({ value: item, key, path, paths, depth: depth + 1 }),
    );
  }
  const fields = Object.keys(value).map((name) => ({ name, masked: maskCardNumbers(name) }));
  // Of two keys that become the same the last one stays, whatever order they came in.
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

/** Keys may be anything, and a path stands in messages. */
const named = (path: readonly string[]): string =>
  path
    .slice(0, maxSegments)
    .map((key) => storable(key.slice(0, maxSegmentLength)))
    .join(".");
