import { tallyhook } from "../../../../platform/command-line.ts";

/** The meaning of the database's error classes for the person who fixes the cause. */
const meanings: Readonly<Record<string, string>> = {
  "22": "A value in it does not fit the mirror's column.",
  "23": "A rule of the mirror's tables refused it: a constraint, or a trigger that was added.",
  "40": "It conflicted with other work. The next attempt may go through.",
  "42": `A table, a column or a right is missing. Ask ${tallyhook("doctor")}.`,
  "53": "The server had no room left: memory, connections or disk.",
};

/**
 * A reason in words, where it is an error of the database; null otherwise. The database's own message may quote
 * personal data, so it is not stored.
 */
export function reasonInWords(reason: string | null): string | null {
  const [, kind = ""] = /database error ([0-9A-Z]{2})[0-9A-Z]{3}/.exec(reason ?? "") ?? [];
  return Object.hasOwn(meanings, kind) ? (meanings[kind] ?? null) : null;
}
