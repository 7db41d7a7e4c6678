/** The command line that calls this program with these arguments, as printed in messages. */
export const tallyhook = (args: string): string => `node src/bin/tallyhook.js ${args}`;
