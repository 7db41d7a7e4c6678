import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { type ErrorType, errorEnvelope } from "../contract/error-envelope.ts";
import type { Verification } from "../contract/signature/verification.ts";
import type { RateLimitedWarnings } from "../../platform/rate-limited-warnings.ts";
import type { ReceiverCounters } from "./counters.ts";

/** An answer that is not 2xx, in the service's error envelope. */
export interface ApiError {
  status: number;
  type: ErrorType;
  code: string;
  message: string;
  headers?: Readonly<Record<string, string>>;
}

/** In seconds: about the length of a failover or a restart. */
const retryAfterSeconds = "5";

export const apiErrors = {
  malformed: {
    status: 400,
    type: "invalid_request_error",
    code: "invalid_request",
    message: "The request is not valid HTTP.",
  },
  /** The same for all reasons: a sender without the secret must learn nothing from the answer. */
  signature: {
    status: 401,
    type: "webhook_error",
    code: "webhook_signature_failed",
    message: "The signature of the webhook could not be verified.",
  },
  notFound: {
    status: 404,
    type: "invalid_request_error",
    code: "resource_not_found",
    message: "There is nothing at this path.",
  },
  method: {
    status: 405,
    type: "invalid_request_error",
    code: "method_not_allowed",
    message: "This path does not support this method.",
  },
  slow: {
    status: 408,
    type: "invalid_request_error",
    code: "request_timeout",
    message: "The request did not arrive in time.",
  },
  tooLarge: {
    status: 413,
    type: "invalid_request_error",
    code: "body_too_large",
    message: "The body is larger than this receiver accepts.",
  },
  contentEncoding: {
    status: 415,
    type: "invalid_request_error",
    code: "unsupported_content_encoding",
    message: "The body must be sent without a content encoding.",
  },
  expectation: {
    status: 417,
    type: "invalid_request_error",
    code: "expectation_failed",
    message: "The only expectation supported is 100-continue.",
  },
  headersTooLong: {
    status: 431,
    type: "invalid_request_error",
    code: "headers_too_large",
    message: "The headers are longer than this receiver accepts.",
  },
  internal: {
    status: 500,
    type: "processing_error",
    code: "internal_error",
    message: "An unexpected error occurred. The event was not stored; send it again.",
    headers: { "Retry-After": retryAfterSeconds },
  },
  unavailable: {
    status: 503,
    type: "webhook_error",
    code: "service_unavailable",
    message: "The event cannot be stored now; send it again.",
    headers: { "Retry-After": retryAfterSeconds },
  },
} as const satisfies Record<string, ApiError>;

const json = "application/json; charset=utf-8";

/** Sends a refusal and returns its request id. Sends nothing when an answer was already sent. */
export function sendApiError(
  res: ServerResponse,
  refusal: ApiError,
  extraHeaders?: Readonly<Record<string, string>>,
): string {
  const { requestId, headers, body } = describeRefusal(refusal);
  if (res.headersSent || res.destroyed) return requestId;
  res.writeHead(refusal.status, { ...headers, ...extraHeaders });
  res.end(body);
  return requestId;
}

/** Sends a 2xx, head and body in one write. Sends nothing when the sender has disconnected. */
export function sendJson(res: ServerResponse, status: number, body: string): void {
  if (res.destroyed) return;
  res.writeHead(status, ["Content-Type", json, "Content-Length", String(Buffer.byteLength(body))]);
  res.end(body);
}

/** A refusal as bytes, for a connection without a response object because its input is not a valid request. */
export function rawApiError(refusal: ApiError, statusText: string): string {
  const { headers, body } = describeRefusal(refusal);
  const lines = Object.entries({ ...headers, Connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${refusal.status} ${statusText}\r\n${lines.join("")}\r\n${body}`;
}

function describeRefusal({ type, code, message, headers }: ApiError) {
  const requestId = `req_${randomUUID().replaceAll("-", "")}`;
  const body = JSON.stringify(errorEnvelope({ type, code, message, requestId }));
  return {
    requestId,
    body,
    headers: {
      "Content-Type": json,
      "Content-Length": String(Buffer.byteLength(body)),
      "X-Request-Id": requestId,
      ...headers,
    },
  };
}

export interface RefusalDeps {
  counters: ReceiverCounters;
  warnRateLimited: RateLimitedWarnings;
}

/** Refuses a request by its headers, without reading the body. */
export function refuseUnread(
  { counters, warnRateLimited }: RefusalDeps,
  res: ServerResponse,
  reason: "too_large" | "content_encoding",
): void {
  counters.rejected[reason] += 1;
  const refusal = reason === "too_large" ? apiErrors.tooLarge : apiErrors.contentEncoding;
  const requestId = sendApiError(res, refusal);
  warnRateLimited("a webhook was refused before its body was read", { reason, requestId });
  discardRest(res);
}

/** Asks the sender to retry, because the bodies in progress fill the byte budget. Reads no more of the body. */
export function refuseOverBudget(deps: RefusalDeps, res: ServerResponse): void {
  refuseUnavailable(deps, res, "The bodies in progress fill the byte budget.");
  discardRest(res);
}

/**
 * Reads and discards the rest of the body. Closing immediately would reset the connection while the sender still
 * writes, and the answer would be lost. The server's time limit for a request ends this.
 */
function discardRest({ req }: ServerResponse): void {
  req.resume();
}

/**
 * Answers 401 and closes the connection. Unauthentic senders would otherwise occupy connections that authentic ones
 * need.
 */
export function refuseSignature(
  { counters, warnRateLimited }: RefusalDeps,
  res: ServerResponse,
  { reason, secretId }: Extract<Verification, { ok: false }>,
): void {
  if (res.headersSent) return;
  counters.rejected[reason] += 1;
  const requestId = sendApiError(res, apiErrors.signature, closing);
  if (reason === "stale") {
    warnRateLimited("signature_stale: a signature was correct and has expired", {
      requestId,
      secretId,
    });
  } else {
    warnRateLimited("a signature did not verify", { reason, requestId });
  }
}

/** Marks the last answer on a connection. */
const closing = { Connection: "close" };

/** Asks the sender to retry: its signature may be valid, but the secrets could not be read again in time. */
export function refuseUnverified(deps: RefusalDeps, res: ServerResponse): void {
  const reason = "The signing secrets could not be read again in time.";
  refuseUnavailable(deps, res, reason, closing);
}

/** Asks the sender to retry, unless it was already answered. */
export function refuseUnavailable(
  { counters, warnRateLimited }: RefusalDeps,
  res: ServerResponse,
  reason: string,
  headers?: Readonly<Record<string, string>>,
): void {
  if (res.headersSent) return;
  counters.unavailable += 1;
  const requestId = sendApiError(res, apiErrors.unavailable, headers);
  warnRateLimited("a webhook could not be stored; the sender was asked to retry", {
    requestId,
    reason,
  });
}

/** The answer to a request whose deadline has passed. */
export function refuseLate(deps: RefusalDeps, res: ServerResponse): void {
  if (res.req.complete) {
    refuseUnavailable(deps, res, "The inbox did not answer in time.");
    return;
  }
  // The server's own time limit is shorter, but it no longer runs while the server closes.
  if (res.headersSent) return;
  deps.counters.rejected.slow += 1;
  res.once("finish", () => res.req.destroy());
  sendApiError(res, apiErrors.slow, closing);
}
