import { isIP } from "node:net";
import { z } from "zod";
import { nearestName } from "./nearest-name.ts";

/** The error texts of a schema, in place of the validator's own. */
interface Said {
  error: (issue: { code?: string; input?: unknown }) => string | undefined;
}

/** `"yes" should be true or false`, `is missing: should be …`. `what` ends the sentence "it should be …". */
export const expected = (what: string): Said => ({
  error: ({ input }) => wrongValue(input, what),
});

/** Like `expected`, for settings in which a secret may have been entered by mistake: the value is not shown. */
export const shouldHidden = (what: string): Said => ({
  error: ({ input }) => (input === undefined ? wrongValue(input, what) : `should be ${what}`),
});

function wrongValue(value: unknown, what: string): string {
  return value === undefined ? `is missing: should be ${what}` : `${shown(value)} should be ${what}`;
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (value !== null && typeof value === "object") return "an object";
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

/** One of a few names. The error suggests the nearest name. */
export const oneOf = <const T extends string>(names: readonly T[]) =>
  z.enum(names as unknown as [T, ...T[]], {
    error: ({ input }) => wrongName(input, names),
  });

function wrongName(given: unknown, names: readonly string[]): string {
  const nearest = typeof given === "string" ? nearestName(given.toLowerCase(), names) : null;
  const hint = nearest === null ? "" : `. Did you mean "${nearest}"?`;
  return wrongValue(given, `one of ${names.map((name) => `"${name}"`).join(", ")}${hint}`);
}

export const yesOrNo = z.boolean(expected("true or false"));

export function wholeNumber(min: number, max: number) {
  const said = expected(`a whole number from ${min} to ${max}`);
  return z.int(said).min(min, said).max(max, said);
}

/** A list with at least one element. `example` shows its form. */
export const listOf = <Element extends z.ZodType>(element: Element, example: string) => {
  const said = expected(`a list with at least one element, such as ${example}`);
  return z.array(element, said).min(1, said);
};

/** Values by name. `example` shows their form. The error for a wrong name describes a valid one. */
export const byName = <Value extends z.ZodType>(
  name: { pattern: RegExp; should: string },
  value: Value,
  example: string,
) =>
  z.record(z.string().regex(name.pattern), value, {
    error: ({ code, input }) =>
      code === "invalid_key"
        ? `is a wrong name: should be ${name.should}`
        : wrongValue(input, `an object such as ${example}`),
  });

/** An object of the settings file. An unknown key is refused, with the key that was probably meant. */
export const settingsObject = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.strictObject(shape, {
    error: (issue) => {
      const known = Object.keys(shape);
      if (issue.code !== "unrecognized_keys") {
        return wrongValue(issue.input, `an object { … } with ${listed(known)}`);
      }
      return issue.keys.map((key: string) => unknownKey(key, known)).join(" ");
    },
  });

const listed = (names: readonly string[]): string =>
  names.length <= 6 ? names.join(", ") : `${names.slice(0, 5).join(", ")}, …`;

function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known);
  const hint = nearest === null ? `There are: ${known.join(", ")}.` : `Did you mean "${nearest}"?`;
  return `there is no setting ${JSON.stringify(key)} here. ${hint}`;
}

/**
 * Objects of several kinds, distinguished by a key; `example` shows its form. A value in the wrong place may be a secret
 * address, so it is not shown.
 */
export const ofKind = <const Key extends string, Option extends z.core.$ZodTypeDiscriminable>(
  key: Key,
  kinds: readonly string[],
  options: readonly Option[],
  example: string,
) =>
  z.discriminatedUnion(key, options as readonly [Option, ...Option[]], {
    error: ({ input }) =>
      input === null || typeof input !== "object" || Array.isArray(input)
        ? `should be an object such as ${example}`
        : wrongName((input as { [K in Key]?: unknown })[key], kinds),
  });

/**
 * The place of a secret: settings never contain a secret, they name the environment variable that holds it (or
 * `<NAME>_FILE`). `prefix` begins every such variable; `settingsVariable` is the one that names the settings.
 */
export function secretVariable(prefix: string, settingsVariable: string) {
  const said = shouldHidden(
    `the name of an environment variable that begins with ${prefix}; the secret itself does not stand in this file`,
  );
  return z
    .string(said)
    .regex(new RegExp(`^${prefix}[A-Z0-9_]{1,80}$`), said)
    .refine((name) => `${name}_FILE` !== settingsVariable && !name.endsWith("_FILE"), {
      error: "should be the variable's name without _FILE, which is tried as well",
    });
}

/** Hosts, each without scheme, port and path. */
export function hostNames(example: string) {
  const said = expected(`a host name or an address alone, without scheme, port and path, such as ${example}`);
  const hostName = z
    .string(said)
    .toLowerCase()
    .refine((text) => isIP(text) > 0 || /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(text), said);
  return z.array(hostName, expected(`a list such as ["${example}"]`));
}
