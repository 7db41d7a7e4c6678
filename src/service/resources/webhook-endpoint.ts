import { z } from "zod";

import { openEnum, timestamp, wireId } from "./wire-types.ts";

export const webhookEndpointStatuses = ["enabled", "disabled"] as const;

/** Where the service pushes events (spec, WebhookEndpoint). */
export const webhookEndpointSchema = z.looseObject({
  id: wireId,
  url: z.string().describe("HTTPS only"),
  description: z.string().nullish(),
  enabled_events: z.array(z.string()).describe("*, patterns such as order.*, or exact names"),
  status: openEnum(webhookEndpointStatuses),
  signing_secret: z.string().optional().describe("In the answer to creation only"),
  has_pending_rotation: z.boolean().nullish(),
  rotation_expires_at: timestamp.nullish(),
  api_version: z.string().nullish().describe("Effective webhook schema version"),
  api_version_pinned_at: timestamp.nullish(),
  api_version_deprecated: z.boolean().nullish(),
  api_version_sunset: z.string().nullish().describe("YYYY-MM-DD"),
  created_at: timestamp,
  updated_at: timestamp.nullish(),
});

/** An endpoint as the service shows it, without its secret. */
export type WebhookEndpoint = z.output<typeof webhookEndpointSchema>;

/**
 * Whether an endpoint that asked for `patterns` receives events of a type (spec, Events): `*` is all, `order.*` is the
 * family at any depth, anything else is an exact name.
 */
export function coversEvent(patterns: readonly string[], type: string): boolean {
  return patterns.some((pattern) => {
    if (pattern === "*") return true;
    return pattern.endsWith(".*") ? type.startsWith(pattern.slice(0, -1)) : pattern === type;
  });
}
