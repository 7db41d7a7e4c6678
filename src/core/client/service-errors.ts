import type { FieldError } from "../contract/error-envelope.ts";
import { TallyhookError, exitCodes } from "../../platform/errors.ts";
import type { HttpMethod } from "../../platform/http/exchange.ts";
import { counted } from "../../platform/readable-text.ts";
import type { ReadAnswer } from "./read-answer.ts";
import type { FailedCallAttempt } from "./retry-decision.ts";

/** Facts about a failed request. Never holds the API key, a query or a body. */
export type FailedRequest = {
  method: string;
  path: string;
  attempts: number;
  status: number | null;
  /** The service's trace id of the last answer, to quote to its support. */
  requestId: string | null;
};

/** A call to the service that did not end in a usable answer. */
export class ServiceError extends TallyhookError {
  readonly request: FailedRequest;

  constructor(what: string, request: FailedRequest, options?: { cause?: unknown }) {
    const id = request.requestId === null ? "" : `, request id ${request.requestId}`;
    const tries = counted(request.attempts, "try", "tries");
    super(`${request.method} ${request.path}: ${what} (${tries}${id})`, options);
    this.request = request;
  }
}

/** The service refused the request: a repeat would get the same answer. Branch on `code`. */
export class ServiceRefusedError extends ServiceError {
  /** 401 and 403 come from configuration: the key, or what it may do. */
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

/** The service could not be reached, or kept failing until the attempts or the time ran out. Try later. */
export class ServiceUnavailableError extends ServiceError {
  /** A service that asks for a later call is set up well and reached: only its answer is missing. */
  override readonly exitCode: number;
  /** The wait that the service asked for, if any. */
  readonly retryAfterMs: number | null;

  constructor(what: string, request: FailedRequest, options: { retryAfterMs: number | null; cause?: unknown }) {
    super(what, request, options.cause === undefined ? {} : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
    this.exitCode = options.retryAfterMs === null ? exitCodes.configuration : exitCodes.incomplete;
  }
}

/** An answer that cannot come from the service: not JSON, cut short, too long, a redirect. */
export class ServiceAnswerError extends ServiceError {}

/** One attempt: an answer, or the reason why there is none. */
export type CallAttempt = { answer: ReadAnswer; cause?: never } | { answer: null; cause: unknown };

export function describeRequest(
  request: { method: HttpMethod; path: string },
  attempts: number,
  answer: ReadAnswer | null,
): FailedRequest {
  return {
    method: request.method,
    path: request.path,
    attempts,
    status: answer?.status ?? null,
    requestId: answer?.requestId ?? null,
  };
}

/** Describes a failed attempt for `decideRetry`; null when no repeat can help. */
export function describeFailure({ answer }: CallAttempt): FailedCallAttempt | null {
  if (answer === null) return { kind: "no_answer" };
  const { status, retryAfterMs, content } = answer;
  if (status >= 300 && status < 400) return null;
  if (!content.ok && !content.transient) return null;
  // A 2xx whose body cannot be read: the service may have acted, and only a repeat can show it.
  if (status < 300) return { kind: "no_answer" };
  return { kind: "answer", status, retryAfterMs, code: answer.error?.code ?? null };
}

/** The error to throw for the last attempt of a call. */
export function failureOf(
  { answer, cause }: CallAttempt,
  request: FailedRequest,
  { retryAfterMs }: { retryAfterMs: number | null },
): Error {
  if (answer === null) {
    const what = `could not be reached (${errorCode(cause) ?? "no answer"})`;
    return new ServiceUnavailableError(what, request, { retryAfterMs, cause });
  }
  const { status, error, content } = answer;
  if (status >= 300 && status < 400) {
    const what = `answered with a redirect (${status}), which is not followed; check SVC_BASE_URL`;
    return new ServiceAnswerError(what, request);
  }
  if (status < 300) {
    return new ServiceAnswerError(content.ok ? "answered unexpectedly" : content.problem, request);
  }
  const said = error === null ? "" : ` ${error.code}: ${error.message}`;
  if (status >= 500 || status === 429) {
    return new ServiceUnavailableError(`answered ${status}${said}`, request, { retryAfterMs });
  }
  return new ServiceRefusedError(
    `refused with ${status}${said}`,
    { ...request, status },
    {
      type: error?.type ?? null,
      code: error?.code ?? null,
      param: error?.param ?? null,
      fieldErrors: error?.fieldErrors ?? [],
    },
  );
}

/** Codes of Node and undici, such as `ECONNREFUSED`. */
export function errorCode(cause: unknown): string | null {
  const code = (cause as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : null;
}
