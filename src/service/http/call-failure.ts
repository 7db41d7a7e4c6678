import {
  ServiceAnswerError,
  ServiceRefusedError,
  ServiceUnavailableError,
} from "../service-errors.ts";
import type { FailedRequest } from "../service-errors.ts";
import type { HttpMethod } from "../../platform/http/exchange.ts";
import type { ReadAnswer } from "./read-answer.ts";
import type { FailedTry } from "./retry-decision.ts";

/** One try: an answer, or the reason why there is none. */
export type Try = { answer: ReadAnswer; cause?: never } | { answer: null; cause: unknown };

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

/** What the decision to try again needs to know; null when no repeat can help. */
export function classify({ answer }: Try): FailedTry | null {
  if (answer === null) return { kind: "no_answer" };
  const { status, retryAfterMs, content } = answer;
  if (status >= 300 && status < 400) return null;
  if (!content.ok && !content.transient) return null;
  // A 2xx that cannot be read: whatever was done is done, and only a repeat can tell.
  if (status < 300) return { kind: "no_answer" };
  return { kind: "answer", status, retryAfterMs, code: answer.error?.code ?? null };
}

/** The error to throw for the last try of a call. */
export function failureOf(
  { answer, cause }: Try,
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
