/**
 * A column of values as the literal of a Postgres array. The driver makes the same, at several times the cost:
 * thousands of short texts go into every batch.
 */
export function arrayLiteral(values: readonly (string | number | boolean | null)[]): string {
  let literal = "";
  for (const value of values) literal += `${literal === "" ? "" : ","}${element(value)}`;
  return `{${literal}}`;
}

const special = /["\\]/;

function element(value: string | number | boolean | null): string {
  if (typeof value !== "string") return value === null ? "NULL" : String(value);
  return `"${special.test(value) ? value.replace(/["\\]/g, "\\$&") : value}"`;
}
