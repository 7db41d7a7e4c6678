import { z } from "zod";

export type ListedObject = { id: string; [field: string]: unknown };

/** Of an object in a list, its id. Not by an object schema, which would copy each object of each page. */
const listedObject = z.custom<ListedObject>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.hasOwn(value, "id") &&
    typeof (value as ListedObject).id === "string",
  "must be an object with an id",
);

/**
 * One page of a list (spec, Conventions). `has_more: false` is the only end of a walk: a short page
 * is not. `cursors.next` may be null or absent where the last id serves as the cursor.
 */
export const listPageSchema = z.looseObject({
  data: z.array(listedObject),
  url: z.string().nullish(),
  has_more: z.boolean(),
  cursors: z.looseObject({ next: z.string().nullish() }).nullish(),
});
