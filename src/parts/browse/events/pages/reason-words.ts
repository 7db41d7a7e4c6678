import { tallyhook } from "../../../../platform/command-line.ts";

/** What the classes of the database's error codes mean to whoever mends the cause. */
const meanings: Readonly<Record<string, string>> = {
  "22": "A value in it does not fit the mirror's column.",
  "23": "A rule of the mirror's tables refused it: a constraint, or a trigger that somebody added.",
  "40": "Other work was in its way. The next attempt may go through.",
  "42": `A table, a column or a right is missing. Ask ${tallyhook("doctor")}.`,
  "53": "The server had no room left: memory, connections or disk.",
};

/**
 * What a reason says in words, where it is an error of the database; null otherwise. What the database itself said may
 * quote somebody's data, so that it is kept nowhere.
 */
export function reasonInWords(reason: string | null): string | null {
  const [, kind = ""] = /database error ([0-9A-Z]{2})[0-9A-Z]{3}/.exec(reason ?? "") ?? [];
  return Object.hasOwn(meanings, kind) ? (meanings[kind] ?? null) : null;
}
