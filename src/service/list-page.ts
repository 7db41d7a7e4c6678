import { z } from "zod";

/**
 * One page of a list (spec, Conventions). `has_more: false` is the only end of a walk: a short page
 * is not. `cursors.next` may be null or absent where the last id serves as the cursor.
 */
export const listPageSchema = z.looseObject({
  data: z.array(z.looseObject({ id: z.string() })),
  url: z.string().nullish(),
  has_more: z.boolean(),
  cursors: z.looseObject({ next: z.string().nullish() }).nullish(),
});
