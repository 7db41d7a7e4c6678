import {
  type ErrorEnvelope,
  type ErrorType,
  type FieldError,
  errorEnvelope,
} from "../../../core/contract/error-envelope.ts";
import { couponErrors } from "../../../core/contract/resources/coupons.ts";

/** A refused request, by the service's stable error code. One table holds the status and type of each code. */
export class ApiError extends Error {
  readonly code: string;
  readonly param: string | null;
  readonly fieldErrors: FieldError[];
  /** Extra headers of the answer, such as `Retry-After`. */
  headers: Readonly<Record<string, string>> = {};

  constructor(code: string, message: string, param: string | null = null, fields?: FieldError[]) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.param = param;
    this.fieldErrors = fields ?? [];
  }
}

/**
 * The gateway did not answer the charge of an order. The order stays pending; a repeat with the same idempotency key
 * completes it.
 */
export class GatewayTimeout extends ApiError {
  readonly orderId: string;

  constructor(orderId: string) {
    super("gateway_error", "The gateway did not answer in time: repeat with the same key.");
    this.name = "GatewayTimeout";
    this.orderId = orderId;
  }
}

export function notFound(resource: string, param: string | null = null): ApiError {
  return new ApiError("resource_not_found", `No such ${resource}.`, param);
}

export function invalidValue(param: string, message: string): ApiError {
  return new ApiError("invalid_value", message, param, [{ field: param, code: "invalid_value", message }]);
}

type Kind = readonly [status: number, type: ErrorType];

const badRequest: Kind = [400, "invalid_request_error"];
const conflict: Kind = [409, "invalid_request_error"];
const unauthenticated: Kind = [401, "authentication_error"];
const forbidden: Kind = [403, "authorization_error"];
const limited: Kind = [429, "rate_limit_error"];

/** Status and type of every error code. docs/assumptions.md lists the statuses that the interface does not show. */
const kinds: Readonly<Record<string, Kind>> = {
  ...Object.fromEntries(couponErrors.map((code) => [code, badRequest])),
  invalid_request: badRequest,
  validation_error: badRequest,
  required_field: badRequest,
  invalid_value: badRequest,
  invalid_format: badRequest,
  contains_html: badRequest,
  invalid_api_version: badRequest,
  api_version_sunset: badRequest,
  resource_in_use: badRequest,
  invalid_state_transition: badRequest,
  customer_has_active_subscriptions: badRequest,
  product_in_active_plans: badRequest,
  subscription_not_modifiable: badRequest,
  field_locked: [422, "invalid_request_error"],
  resource_not_found: [404, "invalid_request_error"],
  resource_already_exists: conflict,
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
  merchant_not_configured: [400, "processing_error"],
  gateway_error: [502, "processing_error"],
  gateway_delete_failed: [502, "processing_error"],
  rate_limit_exceeded: limited,
  global_rate_limit_exceeded: limited,
  too_many_requests: limited,
  webhook_delivery_failed: [502, "webhook_error"],
  webhook_signature_failed: [401, "webhook_error"],
  internal_error: [500, "processing_error"],
  service_unavailable: [503, "processing_error"],
  not_implemented: [501, "processing_error"],
  webhook_endpoint_invalid: [400, "webhook_error"],
};

/** Whether the service can answer a code. */
export function isKnownCode(code: string): boolean {
  return Object.hasOwn(kinds, code);
}

export function statusOf(code: string): number {
  return (kinds[code] ?? badRequest)[0];
}

/** The body of an error answer, in the service's envelope. */
export function errorAnswer(refusal: ApiError, requestId: string): { status: number; body: ErrorEnvelope } {
  const [status, type] = kinds[refusal.code] ?? badRequest;
  const { code, message, param, fieldErrors } = refusal;
  return { status, body: errorEnvelope({ type, code, message, requestId, param, fieldErrors }) };
}
