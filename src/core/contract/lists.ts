import { z } from "zod";
import { canonicalTimestamp } from "./timestamp.ts";

/*
 * Parameters are text on the wire, which the schemas parse. For the OpenAPI document, `override` describes the parsed
 * value, and `param` how several values share one text.
 */

const commaSeparated = { style: "form", explode: false } as const;

/** Text of a whole number from `least`, with few enough digits to be a safe integer. */
const wholeNumber = (least: number, digits: number, error: string) =>
  z
    .string()
    .refine((text) => /^\d+$/.test(text) && text.length <= digits && Number(text) >= least, {
      error,
      params: { code: "invalid_value" },
    })
    .transform(Number)
    .optional();

const positiveCount = wholeNumber(1, 9, "must be a whole number from 1").meta({
  override: { type: "integer", minimum: 1, default: 10 },
});

const centsText = wholeNumber(0, 15, "must be whole cents").meta({
  override: { type: "integer", minimum: 0 },
});

/** Absent, `true` or `false`. */
export const booleanText = z
  .enum(["true", "false"])
  .transform((text) => text === "true")
  .optional()
  .meta({ override: { type: "boolean", enum: undefined } });

/** An instant in any offset, or a day (its midnight in UTC); milliseconds since the epoch. */
const instantText = z
  .string()
  .transform((text, context) => {
    const canonical = canonicalTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);
    if (canonical === null) {
      context.addIssue({
        code: "custom",
        message: "must be an ISO 8601 date-time",
        params: { code: "invalid_format" },
      });
      return z.NEVER;
    }
    return Date.parse(canonical);
  })
  .optional()
  .describe("ISO 8601, or a day: its midnight in UTC");

/** `field[asc]`, `field[desc]`, `field` or `-field`. */
const sort = z
  .string()
  .regex(/^(-[a-z_]+|[a-z_]+(\[(asc|desc)\])?)$/, "must be field[asc], field[desc] or -field")
  .transform((text) => ({
    field: text.replace(/^-|\[.*$/g, ""),
    descending: text.startsWith("-") || text.endsWith("[desc]"),
  }));

const commaSplit = z.string().transform((text) => text.split(",").map((part) => part.trim()));

/** Absent, or several values separated by commas. */
export const commaList = commaSplit.optional().meta({
  override: { type: "array", items: { type: "string" } },
  param: commaSeparated,
});

/** The same for values of an enum. `documented`: those that the interface names, where it names only some. */
export function commaListOf<const Values extends readonly [string, ...string[]]>(
  values: Values,
  documented: readonly Values[number][] = values,
) {
  const isKnown = (value: string): value is Values[number] => values.includes(value);
  return commaSplit
    .transform((parts, context): Values[number][] => {
      const unknown = parts.filter((part) => !isKnown(part));
      if (unknown.length > 0) {
        context.addIssue({
          code: "custom",
          message: `must be one or more of ${values.join(", ")}`,
          params: { code: "invalid_value" },
        });
      }
      return parts.filter(isKnown);
    })
    .optional()
    .meta({
      override: { type: "array", items: { type: "string", enum: [...documented] } },
      param: commaSeparated,
    });
}

/** The parameters of every paged list. */
export const pageQuery = z.object({
  limit: positiveCount,
  starting_after: z.string().min(1).optional(),
  ending_before: z.string().min(1).optional(),
});

/** The order of a list: by creation, by last change, or by another field of the endpoint. */
export function sortQuery(...further: readonly string[]) {
  const fields = ["created_at", "updated_at", ...further];
  const ways = fields.flatMap((field) => [field, `-${field}`, `${field}[asc]`, `${field}[desc]`]);
  return z.object({
    sort: sort.optional().meta({
      override: { type: "string", pattern: undefined, enum: ways, default: "created_at[desc]" },
    }),
  });
}

export const createdAtQuery = z.object({
  "created_at[gte]": instantText,
  "created_at[lt]": instantText,
});

/** An inclusive range of an amount in cents, such as `total[gte]`. */
export function centsRange<Field extends string>(field: Field) {
  return z.object({
    [`${field}[gte]`]: centsText,
    [`${field}[lte]`]: centsText,
  } as Record<`${Field}[gte]` | `${Field}[lte]`, typeof centsText>);
}

/** Relations to embed: a comma-separated list of those that the endpoint documents. */
export function expandQuery<const Relations extends readonly [string, ...string[]]>(relations: Relations) {
  return z.object({ expand: commaListOf(relations) });
}

/** A sparse fieldset, such as `fields[orders]=id,total`. */
export function fieldsQuery<Resource extends string>(resource: Resource) {
  return z.object({
    [`fields[${resource}]`]: commaList,
  } as Record<`fields[${Resource}]`, typeof commaList>);
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

export type ListedObject = { id: string; [field: string]: unknown };

/** Reads the id of an object in a list. No object schema, since that would copy every object of every page. */
const listedObject = z.custom<ListedObject>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.hasOwn(value, "id") &&
    typeof (value as ListedObject).id === "string",
  "must be an object with an id",
);

/**
 * One page of a list. Only `has_more: false` ends a walk; a short page does not. `cursors.next` may be null or absent
 * where the last id serves as the cursor.
 */
export const listPageSchema = z.looseObject({
  data: z.array(listedObject),
  url: z.string().nullish(),
  has_more: z.boolean(),
  cursors: z.looseObject({ next: z.string().nullish() }).nullish(),
});
