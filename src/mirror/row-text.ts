/** What `record_out` of Postgres puts in quotation marks. */
const special = /["\\(), \t\n\v\f\r]/;

/** The text that Postgres makes of `row(…)::text` of these values, which are texts as it prints them itself. */
export function rowText(values: readonly (string | null)[]): string {
  let text = "";
  let separator = "(";
  for (const value of values) {
    text += separator;
    separator = ",";
    if (value === null) continue;
    text += value === "" || special.test(value) ? quoted(value) : value;
  }
  return `${text})`;
}

const doubled = /["\\]/;

const quoted = (value: string): string =>
  `"${doubled.test(value) ? value.replace(/["\\]/g, "$&$&") : value}"`;
