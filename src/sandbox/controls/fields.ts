import { z } from "zod";

export const nothing = z.object({});
export const seed = z.union([z.int(), z.string().max(200)]).transform(String);
export const mode = z.enum(["test", "live"]).default("test");
export const modeQuery = z.object({ mode });

/** How many of the latest entries a log shows. */
export const latest = z
  .string()
  .regex(/^\d{1,6}$/)
  .transform(Number)
  .default(1000);
