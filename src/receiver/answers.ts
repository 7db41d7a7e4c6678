import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { type ErrorType, errorEnvelope } from "../contract/error-envelope.ts";

/** An answer that is not 2xx, in the service's own form (spec, Errors). */
export interface Refusal {
  status: number;
  type: ErrorType;
  code: string;
  message: string;
  headers?: Readonly<Record<string, string>>;
}

/** Seconds; the outages that this answers for (a failover, a restart) take about so long. */
const retryAfterSeconds = "5";

export const refusals = {
  malformed: {
    status: 400,
    type: "invalid_request_error",
    code: "invalid_request",
    message: "The request is not valid HTTP.",
  },
  /** One for all reasons: a sender who does not know the secret learns nothing from it. */
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
    message: "This path does not take this method.",
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
    message: "The body is larger than this receiver takes.",
  },
  contentEncoding: {
    status: 415,
    type: "invalid_request_error",
    code: "unsupported_content_encoding",
    message: "Bodies are taken as they are, without a content encoding.",
  },
  expectation: {
    status: 417,
    type: "invalid_request_error",
    code: "expectation_failed",
    message: "Of expectations this receiver knows 100-continue alone.",
  },
  headersTooLong: {
    status: 431,
    type: "invalid_request_error",
    code: "headers_too_large",
    message: "The headers are longer than this receiver takes.",
  },
  internal: {
    status: 500,
    type: "processing_error",
    code: "internal_error",
    message: "An unexpected error occurred. The event was not taken; send it again.",
    headers: { "Retry-After": retryAfterSeconds },
  },
  unavailable: {
    status: 503,
    type: "webhook_error",
    code: "service_unavailable",
    message: "The event cannot be stored now; send it again.",
    headers: { "Retry-After": retryAfterSeconds },
  },
} as const satisfies Record<string, Refusal>;

const json = "application/json; charset=utf-8";

/** Sends a refusal, and gives back the request id that it bears. Sends nothing where an answer went out before. */
export function sendRefusal(
  res: ServerResponse,
  refusal: Refusal,
  extraHeaders?: Readonly<Record<string, string>>,
): string {
  const { requestId, headers, body } = describeRefusal(refusal);
  if (res.headersSent || res.destroyed) return requestId;
  res.writeHead(refusal.status, { ...headers, ...extraHeaders });
  res.end(body);
  return requestId;
}

/** Sends a 2xx: head and body leave in one write. To a sender who went away, nothing. */
export function sendJson(res: ServerResponse, status: number, body: string): void {
  if (res.destroyed) return;
  res.writeHead(status, ["Content-Type", json, "Content-Length", String(Buffer.byteLength(body))]);
  res.end(body);
}

/** A refusal as bytes, for a connection that has no response object: what came over it is no request. */
export function rawRefusal(refusal: Refusal, statusText: string): string {
  const { headers, body } = describeRefusal(refusal);
  const lines = Object.entries({ ...headers, Connection: "close" }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `HTTP/1.1 ${refusal.status} ${statusText}\r\n${lines.join("")}\r\n${body}`;
}

function describeRefusal({ type, code, message, headers }: Refusal) {
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
