import { errorEnvelopeSchema } from "../error-envelope.ts";
import type { FieldError } from "../error-envelope.ts";
import type { HttpAnswer } from "../../platform/http/exchange.ts";
import { parseHttpDate, parseRetryAfter } from "../../platform/http/retry-after.ts";

/** What an answer says, whether or not it is one of the service. */
export type ReadAnswer = {
  status: number;
  requestId: string | null;
  /** The service's clock; null where the answer has no `Date` or did not come from the service. */
  date: Date | null;
  retryAfterMs: number | null;
  content:
    | { ok: true; body: unknown }
    /** Why the body cannot be read, and whether another try may help. */
    | { ok: false; problem: string; transient: boolean };
  error: ReadError | null;
};

export type ReadError = {
  type: string;
  code: string;
  message: string;
  param: string | null;
  fieldErrors: Partial<FieldError>[];
};

/** The name of the header is not shown in the spec; these are tried in turn (assumed). */
const requestIdHeaders = ["x-request-id", "request-id", "svc-request-id"];

/** Reads an answer; never throws. `now` stands in for a missing `Date` in `Retry-After`. */
export function readAnswer(answer: HttpAnswer, now: Date): ReadAnswer {
  const content = parseContent(answer);
  const envelope = content.ok ? errorEnvelopeSchema.safeParse(content.body) : null;
  const error = envelope?.success === true ? envelope.data.error : null;
  const dateHeader = answer.header("date");
  const headerDate = dateHeader === null ? null : parseHttpDate(dateHeader);
  return {
    status: answer.status,
    requestId: error?.request_id ?? headerRequestId(answer),
    // A proxy's error page bears the proxy's date, which is no reading of the service's clock.
    date: content.ok ? headerDate : null,
    retryAfterMs: parseRetryAfter(answer.header("retry-after"), headerDate ?? now),
    content,
    error:
      error === null
        ? null
        : {
            type: error.type,
            code: error.code,
            message: error.message,
            param: error.param ?? null,
            fieldErrors: (error.field_errors ?? []).map(withoutNulls),
          },
  };
}

function headerRequestId(answer: HttpAnswer): string | null {
  for (const name of requestIdHeaders) {
    const value = answer.header(name);
    if (value !== null) return value.slice(0, 200);
  }
  return null;
}

function parseContent({ status, body, header }: HttpAnswer): ReadAnswer["content"] {
  if (body === "too_long") {
    return { ok: false, problem: "its answer is longer than allowed", transient: false };
  }
  if (body === "cut_short") {
    return { ok: false, problem: "its answer was cut short", transient: true };
  }
  if (status === 204) return { ok: true, body: null };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return { ok: true, body: JSON.parse(text) as unknown };
  } catch {
    // The parser's message would quote the body.
    const type = header("content-type")?.slice(0, 100) ?? "none";
    const problem = `its answer is no JSON, or cut short (${body.length} bytes, content type: ${type})`;
    return { ok: false, problem, transient: true };
  }
}

function withoutNulls(fieldError: {
  field?: string | null | undefined;
  code?: string | null | undefined;
  message?: string | null | undefined;
}): Partial<FieldError> {
  return {
    ...(typeof fieldError.field === "string" ? { field: fieldError.field } : {}),
    ...(typeof fieldError.code === "string" ? { code: fieldError.code } : {}),
    ...(typeof fieldError.message === "string" ? { message: fieldError.message } : {}),
  };
}
