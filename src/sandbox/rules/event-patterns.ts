/**
 * Whether an endpoint that asked for `patterns` receives events of a type (spec, Events): `*` is all,
 * `order.*` is the family at any depth, anything else is an exact name.
 */
export function matchesPatterns(patterns: readonly string[], type: string): boolean {
  return patterns.some((pattern) => {
    if (pattern === "*") return true;
    if (pattern.endsWith(".*")) return type.startsWith(pattern.slice(0, -1));
    return pattern === type;
  });
}
