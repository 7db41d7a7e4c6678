/** The command line that calls this program with these arguments, as printed in messages. */
export const tallyhook = (args: string): string => `node src/bin/tallyhook.js ${args}`;

/** A value as a shell takes it whole, quoted where it must be. */
export const quoted = (text: string): string =>
  /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
