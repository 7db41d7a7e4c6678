import { createHash } from "node:crypto";

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/**
 * One form for one content: keys sorted, nulls of objects left out (an absent optional key is null), the keys
 * in `without` left out at the top. What `jsonb` refuses (NUL, lone surrogates) becomes U+FFFD; the exact
 * bytes stay in the inbox.
 */
export function canonicalObject(
  object: Readonly<Record<string, unknown>>,
  without: ReadonlySet<string>,
): JsonObject {
  const result = Object.create(null) as JsonObject;
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value === null || value === undefined || without.has(key)) continue;
    result[storable(key)] = canonicalValue(value);
  }
  return result;
}

const nothing: ReadonlySet<string> = new Set();

function canonicalValue(value: unknown): Json {
  if (typeof value === "string") return storable(value);
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.map(canonicalValue);
  if (typeof value === "object" && value !== null) {
    return canonicalObject(value as Record<string, unknown>, nothing);
  }
  return null;
}

// Looks for what must be replaced first: almost no text needs it.
const refused = /[\u0000\ud800-\udfff]/;

function storable(text: string): string {
  return refused.test(text) ? text.toWellFormed().replaceAll("\u0000", "\ufffd") : text;
}

/** 32 hex digits that stand for the content: equal exactly when the canonical forms are. */
export function contentHash(content: Json): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 32);
}
