import { z } from "zod";

import { canonicalTimestamp } from "../timestamp.ts";

/** Text that is a whole number of at least 1. */
const positiveCount = z
  .string()
  .regex(/^\d{1,9}$/, "must be a whole number from 1")
  .transform(Number)
  .refine((value) => value >= 1, {
    error: "must be a whole number from 1",
    params: { code: "invalid_value" },
  });

const centsText = z
  .string()
  .regex(/^\d{1,15}$/, "must be whole cents")
  .transform(Number);

export const booleanText = z.enum(["true", "false"]).transform((text) => text === "true");

/** An instant in any offset, or a day (its midnight in UTC); milliseconds since the epoch. */
const instantText = z.string().transform((text, context) => {
  const canonical = canonicalTimestamp(
    /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text,
  );
  if (canonical === null) {
    context.addIssue({
      code: "custom",
      message: "must be an ISO 8601 date-time",
      params: { code: "invalid_format" },
    });
    return z.NEVER;
  }
  return Date.parse(canonical);
});

/** `field[asc]`, `field[desc]`, `field` or `-field` (spec, Conventions). Which fields, each list says. */
const sort = z
  .string()
  .regex(/^(-[a-z_]+|[a-z_]+(\[(asc|desc)\])?)$/, "must be field[asc], field[desc] or -field")
  .transform((text) => ({
    field: text.replace(/^-|\[.*$/g, ""),
    descending: text.startsWith("-") || text.endsWith("[desc]"),
  }));

export const commaList = z.string().transform((text) => text.split(",").map((part) => part.trim()));

/** Several values of an enum, separated by commas. */
export function commaListOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  const isKnown = (value: string): value is Values[number] => values.includes(value);
  return commaList.transform((parts, context): Values[number][] => {
    const unknown = parts.filter((part) => !isKnown(part));
    if (unknown.length > 0) {
      context.addIssue({
        code: "custom",
        message: `must be one or more of ${values.join(", ")}`,
        params: { code: "invalid_value" },
      });
    }
    return parts.filter(isKnown);
  });
}

/** The parameters of every paged list. */
export const pageQuery = z.object({
  limit: positiveCount.optional(),
  starting_after: z.string().min(1).optional(),
  ending_before: z.string().min(1).optional(),
});

export const sortQuery = z.object({ sort: sort.optional() });

export const createdAtQuery = z.object({
  "created_at[gte]": instantText.optional(),
  "created_at[lt]": instantText.optional(),
});

/** An inclusive range of an amount in cents, such as `total[gte]`. */
export function centsRange<Field extends string>(field: Field) {
  return z.object({
    [`${field}[gte]`]: centsText.optional(),
    [`${field}[lte]`]: centsText.optional(),
  } as Record<`${Field}[gte]` | `${Field}[lte]`, z.ZodOptional<typeof centsText>>);
}

/** Relations to embed: a comma list of those that the endpoint documents. */
export function expandQuery<const Relations extends readonly [string, ...string[]]>(
  relations: Relations,
) {
  return z.object({ expand: commaListOf(relations).optional() });
}

/** A sparse fieldset, such as `fields[orders]=id,total`. */
export function fieldsQuery<Resource extends string>(resource: Resource) {
  return z.object({
    [`fields[${resource}]`]: commaList.optional(),
  } as Record<`fields[${Resource}]`, z.ZodOptional<typeof commaList>>);
}

/** The answer of a list: `cursors.next` is the last id, null on the last page. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item),
    url: z.string(),
    has_more: z.boolean(),
    cursors: z.object({ next: z.string().nullable() }),
  });
}
