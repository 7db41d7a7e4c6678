/** How this program is called with these arguments, as people and messages write it. Pure. */
export const tallyhook = (args: string): string => `node src/bin/tallyhook.js ${args}`;
