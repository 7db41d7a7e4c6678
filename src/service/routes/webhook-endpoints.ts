import { z } from "zod";

import { webhookEndpointSchema, webhookEndpointStatuses } from "../resources/webhook-endpoint.ts";
import { timestamp, wireId } from "../resources/wire-types.ts";
import { defineEndpoint } from "./endpoint.ts";
import { listOf, pageQuery } from "./list-query.ts";
import { plainText } from "./request-fields.ts";
import { deletion, idParam, noBody, noParams, noQuery } from "./shared.ts";

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
  params: noParams,
  query: noQuery,
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
  idempotency: "none",
  params: noParams,
  query: pageQuery,
  body: noBody,
  status: 200,
  answer: listOf(webhookEndpointSchema),
  errors: [],
});

export const getWebhookEndpoint = defineEndpoint({
  name: "getWebhookEndpoint",
  method: "GET",
  path: "/webhook_endpoints/{id}",
  summary: "Retrieve a webhook endpoint",
  permission: "webhook_endpoints:read",
  idempotency: "none",
  params: idParam,
  query: noQuery,
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: endpointInput.partial().extend({ status: z.enum(webhookEndpointStatuses).optional() }),
  status: 200,
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
  query: noQuery,
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: z.object({ grace_period_hours: z.int().positive().max(maxGraceHours).default(24) }),
  status: 200,
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
  query: noQuery,
  body: noBody,
  status: 200,
  // The answer is not shown.
  answer: z.object({ id: wireId, event_id: wireId, message: z.string() }),
  errors: ["resource_not_found"],
});
