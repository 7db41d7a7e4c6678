import { exitCodes, TallyhookError } from "../platform/errors.ts";
import type { FieldError } from "./error-envelope.ts";
import { counted } from "../platform/counted.ts";

/** What is known of a request that failed. Never holds the API key, a query or a body. */
export type FailedRequest = {
  method: string;
  path: string;
  attempts: number;
  status: number | null;
  /** The service's trace id of the last answer, to quote to its support. */
  requestId: string | null;
};

/** A call of the service that did not end in a usable answer. */
export class ServiceError extends TallyhookError {
  readonly request: FailedRequest;

  constructor(what: string, request: FailedRequest, options?: { cause?: unknown }) {
    const id = request.requestId === null ? "" : `, request id ${request.requestId}`;
    const tries = counted(request.attempts, "try", "tries");
    super(`${request.method} ${request.path}: ${what} (${tries}${id})`, options);
    this.request = request;
  }
}

/** The service said no: a repeat would get the same answer. Branch on `code`. */
export class ServiceRefusedError extends ServiceError {
  /** 401 and 403 are a matter of configuration: the key or what it may do. */
  override readonly exitCode: number;
  readonly status: number;
  readonly type: string | null;
  readonly code: string | null;
  readonly param: string | null;
  readonly fieldErrors: readonly Partial<FieldError>[];

  constructor(
    what: string,
    request: FailedRequest & { status: number },
    refusal: {
      type: string | null;
      code: string | null;
      param: string | null;
      fieldErrors: readonly Partial<FieldError>[];
    },
  ) {
    super(what, request);
    this.status = request.status;
    this.type = refusal.type;
    this.code = refusal.code;
    this.param = refusal.param;
    this.fieldErrors = refusal.fieldErrors;
    const isCredential = request.status === 401 || request.status === 403;
    this.exitCode = isCredential ? exitCodes.configuration : exitCodes.unexpected;
  }
}

/** The service could not be reached, or kept failing until the tries or the time ran out. Try later. */
export class ServiceUnavailableError extends ServiceError {
  override readonly exitCode: number = exitCodes.configuration;
  /** What the service asked to wait, if it did. */
  readonly retryAfterMs: number | null;

  constructor(
    what: string,
    request: FailedRequest,
    options: { retryAfterMs: number | null; cause?: unknown },
  ) {
    super(what, request, options.cause === undefined ? {} : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** An answer came that cannot be one of the service: no JSON, cut short, too long, a redirect. */
export class ServiceAnswerError extends ServiceError {}
