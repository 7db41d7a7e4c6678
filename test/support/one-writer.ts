import type { SourceFile } from "./architecture-rules.ts";
import { blankComments } from "./source-text.ts";

/** The start of a statement that changes a table of the mirror, in SQL and as Knex builds it. */
const WRITES = [
  /\b(?:insert\s+into|merge\s+into|delete\s+from|update|truncate(?:\s+table)?|copy)\s+(?:only\s+)?"?mirror"?\s*\./gi,
  /\(\s*["'`]mirror\.[^"'`]*["'`]\s*\)[^;]*?\.\s*(?:insert|update|upsert|del|delete|truncate|increment|decrement)\s*\(/g,
  /\.\s*(?:into|batchInsert)\s*\(\s*["'`]mirror\./g,
  /\.\s*withSchema\s*\(\s*["'`]mirror["'`]/g,
];

/**
 * The statements outside `src/core/mirror/` that write the mirror: only that folder keeps versions, history and rows in step. A
 * Knex builder that was put into a variable first is not seen.
 */
export function mirrorWriteFaults(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.startsWith("src/") && !path.startsWith("src/core/mirror/"))
    .flatMap(({ path, text }) => {
      const said = blankComments(text);
      return WRITES.flatMap((pattern) => [...said.matchAll(pattern)]).map(
        ({ index }) =>
          `${path}:${said.slice(0, index).split("\n").length} writes the mirror: let src/core/mirror/ do it`,
      );
    });
}
