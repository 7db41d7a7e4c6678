import type { z } from "zod";

const requiredKeysOf = new WeakMap<z.ZodObject, readonly string[]>();

/**
 * The required keys of a resource that an object does not have. An object with any is *thin*: it
 * says that something happened but not the whole state, so it must be read from the service
 * instead of being stored. A key that is present with a bad value is not missing: parsing says so.
 */
export function missingKeys(
  schema: z.ZodObject,
  object: Readonly<Record<string, unknown>>,
): string[] {
  let required = requiredKeysOf.get(schema);
  if (required === undefined) {
    required = Object.entries(schema.shape)
      .filter(([, field]) => !field.safeParse(undefined).success)
      .map(([key]) => key);
    requiredKeysOf.set(schema, required);
  }
  return required.filter((key) => !Object.hasOwn(object, key));
}
