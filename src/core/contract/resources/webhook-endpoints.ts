import { z } from "zod";
import { defineEndpoint, deletion, idParam } from "../endpoint.ts";
import { listOf, pageQuery } from "../lists.ts";
import { plainText } from "../request-fields.ts";
import { openEnum, timestamp, wireId } from "../wire-types.ts";

const webhookEndpointStatuses = ["enabled", "disabled"] as const;

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

/** An endpoint as the service returns it. Only the answer to its creation has the secret. */
export type WebhookEndpoint = z.output<typeof webhookEndpointSchema>;

/**
 * Whether an endpoint that asked for `patterns` receives events of a type: `*` is all, `order.*` is the family at any
 * depth, anything else is an exact name.
 */
export function coversEvent(patterns: readonly string[], type: string): boolean {
  return patterns.some((pattern) => {
    if (pattern === "*") return true;
    return pattern.endsWith(".*") ? type.startsWith(pattern.slice(0, -1)) : pattern === type;
  });
}

const maxGraceHours = 24 * 30;

const endpointInput = z.object({
  url: z.string().max(2000),
  description: plainText().nullish(),
  enabled_events: z.array(z.string().min(1).max(100)).min(1).max(100),
  api_version: z.string().optional(),
});

export const createWebhookEndpoint = defineEndpoint({
  name: "createWebhookEndpoint",
  method: "POST",
  path: "/webhook_endpoints",
  summary: "Register a webhook endpoint; the secret is in this answer only",
  permission: "webhook_endpoints:write",
  idempotency: "required",
  body: endpointInput,
  status: 201,
  answer: webhookEndpointSchema,
  errors: ["webhook_endpoint_invalid", "invalid_api_version"],
});

export const listWebhookEndpoints = defineEndpoint({
  name: "listWebhookEndpoints",
  method: "GET",
  path: "/webhook_endpoints",
  summary: "List webhook endpoints",
  permission: "webhook_endpoints:read",
  query: pageQuery,
  answer: listOf(webhookEndpointSchema),
});

export const getWebhookEndpoint = defineEndpoint({
  name: "getWebhookEndpoint",
  method: "GET",
  path: "/webhook_endpoints/{id}",
  summary: "Retrieve a webhook endpoint",
  permission: "webhook_endpoints:read",
  params: idParam,
  answer: webhookEndpointSchema,
  errors: ["resource_not_found"],
});

export const updateWebhookEndpoint = defineEndpoint({
  name: "updateWebhookEndpoint",
  method: "PATCH",
  path: "/webhook_endpoints/{id}",
  summary: "Change a webhook endpoint",
  permission: "webhook_endpoints:write",
  idempotency: "required",
  params: idParam,
  body: endpointInput.partial().extend({ status: z.enum(webhookEndpointStatuses).optional() }),
  answer: webhookEndpointSchema,
  errors: ["resource_not_found", "webhook_endpoint_invalid", "invalid_api_version"],
});

export const deleteWebhookEndpoint = defineEndpoint({
  name: "deleteWebhookEndpoint",
  method: "DELETE",
  path: "/webhook_endpoints/{id}",
  summary: "Remove a webhook endpoint and what is still to be delivered to it",
  permission: "webhook_endpoints:write",
  idempotency: "sent",
  params: idParam,
  answer: deletion,
  errors: ["resource_not_found"],
});

export const rotateWebhookSecret = defineEndpoint({
  name: "rotateWebhookSecret",
  method: "POST",
  path: "/webhook_endpoints/{id}/rotate_secret",
  summary: "Replace the signing secret; both sign during the grace period",
  permission: "webhook_endpoints:write",
  idempotency: "required",
  params: idParam,
  body: z.object({ grace_period_hours: z.int().positive().max(maxGraceHours).default(24) }),
  answer: z.object({
    id: wireId,
    new_signing_secret: z.string(),
    previous_secret_valid_until: timestamp,
    message: z.string(),
  }),
  errors: ["resource_not_found", "invalid_state_transition"],
});

export const testWebhookEndpoint = defineEndpoint({
  name: "testWebhookEndpoint",
  method: "POST",
  path: "/webhook_endpoints/{id}/test",
  summary: "Send a test event",
  permission: "webhook_endpoints:write",
  idempotency: "sent",
  params: idParam,
  // The answer is assumed.
  answer: z.object({ id: wireId, event_id: wireId, message: z.string() }),
  errors: ["resource_not_found"],
});
