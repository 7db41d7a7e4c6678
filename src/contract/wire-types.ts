import { z } from "zod";
import { canonicalTimestamp } from "./timestamp.ts";

/**
 * The value types that every resource of the service is made of (spec, Conventions).
 *
 * Strings keep the service's spelling; nothing here transforms, so that what is stored is what was
 * sent. A field the spec shows is checked by type; a field whose name the spec does not show is
 * marked "assumed" where it stands and never makes a resource unreadable by being absent.
 */

/** Money: an integer in minor units (cents), at least 0, exact in a double. */
export const minorUnits = z.int().nonnegative();

/** Money whose sign the spec leaves open (refunds): a safe integer in minor units. */
export const signedMinorUnits = z.int();

/** A count, such as attempts or cycles. */
export const count = z.int().nonnegative();

/** ISO 4217, three lower-case letters by the spec; kept verbatim, also when it is not. */
export const currencyCode = z.string().min(1).max(32);

/** An instant; compare through `canonicalTimestamp`, never as a `Date` (it drops microseconds). */
export const timestamp = z
  .string()
  .refine((text) => canonicalTimestamp(text) !== null, "must be an ISO 8601 date-time with offset");

const wireIdForm = /^[^\p{Cc}\p{Cs}]{1,255}$/u;

/**
 * An id. UUIDs by the spec, read as opaque text: no control characters and no lone surrogates
 * (Postgres would refuse or alter them, so two ids could become one), and short enough for an index.
 */
export const wireId = z
  .string()
  .regex(wireIdForm, "must be 1 to 255 characters without control characters");

/** The same where no message is needed, at a tenth of the cost. */
export const isWireId = (value: unknown): value is string =>
  typeof value === "string" && wireIdForm.test(value);

/** Custom key/value data; limits on keys and values are not shown. */
export const metadata = z.record(z.string(), z.unknown());

/** An object of JSON, whatever is in it. */
export type WireObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is WireObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const asObject = (value: unknown): WireObject | undefined =>
  isObject(value) ? value : undefined;

/**
 * An enum that the service may extend: the known values are there to branch on, any other string is
 * accepted and kept.
 */
export function openEnum<const Known extends readonly string[]>(
  known: Known,
): z.ZodType<Known[number] | (string & {}), string> {
  return z.string().meta({ examples: [...known] });
}

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
