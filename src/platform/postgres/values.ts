/**
 * A column of values as one binding for `unnest(?::type[])`. Knex' types know neither read-only arrays nor
 * nulls in arrays; the driver takes both.
 */
export const sqlArray = (values: readonly (string | number | boolean | null)[]): string[] =>
  values as string[];

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
