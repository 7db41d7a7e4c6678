import { tallyhook } from "../../platform/command-line.ts";

/** The meaning of the database's error classes for the person who fixes the cause. */
const meanings: Readonly<Record<string, string>> = {
  "22": "A value in it does not fit the mirror's column.",
  "23": "A rule of the mirror's tables refused it: a constraint, or a trigger that was added.",
  "40": "It conflicted with other work. The next attempt may go through.",
  "42": `A table, a column or a right is missing. Ask ${tallyhook("doctor")}.`,
  "53": "The server had no room left: memory, connections or disk.",
};

/**
 * Why an event was not applied, in words; null where the reason says it already. An error of the database is explained
 * by its class, since its message may quote personal data and is not stored.
 */
export function reasonInWords(reason: string | null): string | null {
  const [, kind = ""] = /database error ([0-9A-Z]{2})[0-9A-Z]{3}/.exec(reason ?? "") ?? [];
  if (Object.hasOwn(meanings, kind)) return meanings[kind] ?? null;
  const [, field = "", problem = ""] = /^([\w.]{1,80}): (.{1,200})$/.exec(reason ?? "") ?? [];
  if (problem === "not JSON in UTF-8") return "Its body is not JSON in UTF-8.";
  if (problem === "no object") return `The event has no object at ${field}.`;
  const [, expected = "", received = ""] = /^Invalid input: expected (\w+), received (\w+)$/.exec(problem) ?? [];
  if (received === "undefined") return `The event has no ${field}.`;
  return received === "" ? null : `Its ${field} is ${article(received)}, and ${article(expected)} was expected.`;
}

/** `null`, `an array`, `a string`. */
const article = (type: string): string => (type === "null" ? type : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`);
