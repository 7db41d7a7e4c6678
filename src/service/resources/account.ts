import { z } from "zod";

/** The merchant's account (spec, Account). */
export const accountSchema = z.looseObject({
  api_version: z.string().nullable().describe("Null: the latest is used"),
  latest_api_version: z.string(),
});
