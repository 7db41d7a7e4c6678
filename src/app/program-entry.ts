import { fileURLToPath } from "node:url";

/** The program's entry, from here and from where the compiler puts this file. */
export const programEntry = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../bin/tallyhook.js" : "../../../src/bin/tallyhook.js", import.meta.url),
);
