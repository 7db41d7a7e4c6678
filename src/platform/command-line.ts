/** How this program is called with these arguments, as people and messages write it. */
export const tallyhook = (args: string): string => `node src/bin/tallyhook.js ${args}`;
