type Json = Readonly<Record<string, unknown>>;

/** Equality of JSON values, ignoring the order of keys; an absent value equals null. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isSameJson((a as Json)[key], (b as Json)[key]));
}
