import { z } from "zod";

/** Path parameters are opaque: an id that is no UUID is simply unknown (404). */
export const idParam = z.object({ id: z.string() });
export const noParams = z.object({});
export const noQuery = z.object({});

/** Endpoints without a body read none, whatever is sent. */
export const noBody = z.unknown().transform(() => undefined);

export const deletion = z.object({
  id: z.string(),
  deleted: z.literal(true),
  message: z.string(),
});

/** Codes of everything that charges a stored card. */
export const chargeErrors = [
  "customer_not_configured",
  "merchant_not_configured",
  "replacement_required",
] as const;
