import type { ErrorEnvelope, ErrorType } from "../../service/error-envelope.ts";
import { errorEnvelope } from "../../service/error-envelope.ts";
import type { Refusal } from "../refusal.ts";

type Kind = readonly [status: number, type: ErrorType];

const badRequest: Kind = [400, "invalid_request_error"];
const conflict: Kind = [409, "invalid_request_error"];
const unauthenticated: Kind = [401, "authentication_error"];
const forbidden: Kind = [403, "authorization_error"];

/** Status and type of every code (spec, Errors). Where the interface shows no status: docs/assumptions.md. */
const kinds: Readonly<Record<string, Kind>> = {
  validation_error: badRequest,
  required_field: badRequest,
  invalid_value: badRequest,
  invalid_format: badRequest,
  contains_html: badRequest,
  code_not_found: badRequest,
  invalid_api_version: badRequest,
  api_version_sunset: badRequest,
  resource_in_use: badRequest,
  invalid_state_transition: badRequest,
  customer_has_active_subscriptions: badRequest,
  product_in_active_plans: badRequest,
  subscription_not_modifiable: badRequest,
  resource_not_found: [404, "invalid_request_error"],
  email_already_exists: conflict,
  phone_already_exists: conflict,
  sku_already_exists: conflict,
  already_canceled: conflict,
  subscription_completed: conflict,
  missing_api_key: unauthenticated,
  invalid_api_key: unauthenticated,
  invalid_api_key_format: unauthenticated,
  expired_api_key: unauthenticated,
  revoked_api_key: unauthenticated,
  insufficient_permissions: forbidden,
  ip_not_allowed: forbidden,
  environment_mismatch: forbidden,
  missing_idempotency_key: [422, "idempotency_error"],
  invalid_idempotency_key: [422, "idempotency_error"],
  request_in_progress: [409, "idempotency_error"],
  idempotency_key_conflict: [409, "idempotency_error"],
  customer_not_configured: [400, "processing_error"],
  replacement_required: [400, "processing_error"],
  internal_error: [500, "processing_error"],
  service_unavailable: [503, "processing_error"],
  not_implemented: [501, "processing_error"],
  webhook_endpoint_invalid: [400, "webhook_error"],
};

/** What is sent for a refusal. */
export function refusalAnswer(
  refusal: Refusal,
  requestId: string,
): { status: number; body: ErrorEnvelope } {
  const [status, type] = kinds[refusal.code] ?? badRequest;
  const { code, message, param, fieldErrors } = refusal;
  return { status, body: errorEnvelope({ type, code, message, requestId, param, fieldErrors }) };
}
