/**
 * A column of values as one binding for `unnest(?::type[])`. Knex' types know neither read-only arrays nor
 * nulls in arrays; the driver takes both.
 */
export const sqlArray = (values: readonly (string | number | boolean | null)[]): string[] =>
  values as string[];
