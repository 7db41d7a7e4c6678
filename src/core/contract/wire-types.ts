import { z } from "zod";
import { canonicalTimestamp } from "./timestamp.ts";

/**
 * The value types that every resource of the service is made of.
 *
 * Strings keep the service's spelling; nothing here transforms, so a value is stored as it was sent. A field that the
 * interface documents is checked by type. A field whose name it does not document is marked "assumed", and its absence
 * never makes a resource unreadable.
 */

/** Money: an integer in minor units (cents), at least 0, exact in a double. */
export const minorUnits = z.int().nonnegative();

/** Money whose sign the interface leaves open (refunds): a safe integer in minor units. */
export const signedMinorUnits = z.int();

/** A count, such as attempts or cycles. */
export const count = z.int().nonnegative();

/** ISO 4217, three lower-case letters by the interface; kept verbatim in a stored object, even when it is not. */
export const currencyCode = z.string().min(1).max(32);

/**
 * A currency in the one spelling that columns, sums and reports have: the interface's lower case. Only A to Z change,
 * as in `reports.currency_of`.
 */
export const canonicalCurrency = (text: string): string =>
  /[A-Z]/.test(text) ? text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()) : text;

/** An instant; compare through `canonicalTimestamp`, never as a `Date` (it drops microseconds). */
export const timestamp = z
  .string()
  .refine((text) => canonicalTimestamp(text) !== null, "must be an ISO 8601 date-time with offset");

/** Written in ranges because the OpenAPI document shows it: tools that drop the flag read `\p{Cc}` as four letters. */
const wireIdForm = /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]{1,255}$/u;

/**
 * An id. UUIDs by the interface, read as opaque text: no control characters and no lone surrogates (Postgres would
 * refuse or alter them, so two ids could become one), and short enough for an index.
 */
export const wireId = z.string().regex(wireIdForm, "must be 1 to 255 characters without control characters");

/** The same check as `wireId`, without a message and at a tenth of the cost. */
export const isWireId = (value: unknown): value is string => typeof value === "string" && wireIdForm.test(value);

/** Custom key/value data; limits on keys and values are not documented. */
export const metadata = z.record(z.string(), z.unknown());

/** A JSON object with any content. */
export type WireObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is WireObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const asObject = (value: unknown): WireObject | undefined => (isObject(value) ? value : undefined);

/**
 * An enum that the service may extend: code can branch on the known values, and any other string is accepted and kept.
 */
export function openEnum<const Known extends readonly string[]>(
  known: Known,
): z.ZodType<Known[number] | (string & {}), string> {
  return z.string().meta({ examples: [...known] });
}

const requiredKeysOf = new WeakMap<z.ZodObject, readonly string[]>();

/**
 * The required keys that an object lacks. An object that lacks any is *partial*: it shows that something happened but
 * not the whole state, so it is refetched instead of stored. A key that is present with a bad value does not count as
 * missing; parsing reports it.
 */
export function missingKeys(schema: z.ZodObject, object: Readonly<Record<string, unknown>>): string[] {
  let required = requiredKeysOf.get(schema);
  if (required === undefined) {
    required = Object.entries(schema.shape)
      .filter(([, field]) => !field.safeParse(undefined).success)
      .map(([key]) => key);
    requiredKeysOf.set(schema, required);
  }
  return required.filter((key) => !Object.hasOwn(object, key));
}
