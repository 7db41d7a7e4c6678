/** A spreadsheet treats text that begins like this as a formula and runs it. */
const startsFormula = /^[=+\-@\t\r\n]/;

/** Puts a `'` before a text that a spreadsheet would run. */
export const withoutFormula = (text: string): string => (startsFormula.test(text) ? `'${text}` : text);
