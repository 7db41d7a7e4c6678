/**
 * A column of values as one binding for `unnest(?::type[])`: the literal of a Postgres array. The driver makes the same
 * of an array, at several times the cost, and thousands of short texts go into every batch.
 */
export function sqlArray(values: readonly (string | number | boolean | null)[]): string {
  let literal = "";
  for (const value of values) literal += `${literal === "" ? "" : ","}${element(value)}`;
  return `{${literal}}`;
}

const special = /["\\]/;

function element(value: string | number | boolean | null): string {
  if (typeof value !== "string") return value === null ? "NULL" : String(value);
  return `"${special.test(value) ? value.replace(/["\\]/g, "\\$&") : value}"`;
}

const suspect = /[\u0000\ud800-\udfff]/;

/** Text as Postgres takes it. Looks for what may have to be replaced first: almost no text needs it. Pure. */
export function storable(text: string): string {
  return suspect.test(text) ? text.toWellFormed().replaceAll("\u0000", "\ufffd") : text;
}

/** JSON that `jsonb` takes, whatever the texts in it hold. For small values: it looks at every text. Pure. */
export const storableJson = (value: unknown): string =>
  JSON.stringify(value, (_key, each: unknown) =>
    typeof each === "string" ? storable(each) : each,
  );
