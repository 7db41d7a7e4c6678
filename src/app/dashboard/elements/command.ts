/** A value as a shell takes it whole, quoted where it must be. */
export const quoted = (text: string): string =>
  /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
