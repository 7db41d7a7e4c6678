import { type FieldError, errorEnvelopeSchema } from "../contract/error-envelope.ts";
import { foreignText } from "../../platform/redaction.ts";
import { type HttpAnswer, parseHttpDate, parseRetryAfter } from "../../platform/http/exchange.ts";

/** An answer as it was read; it may not come from the service (a proxy's error page). */
export type ReadAnswer = {
  status: number;
  requestId: string | null;
  /** The service's clock; null where the answer has no `Date` or did not come from the service. */
  date: Date | null;
  retryAfterMs: number | null;
  content:
    | { ok: true; body: unknown }
    /** `problem`: why the body cannot be read. `transient`: a retry may help. */
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

/**
 * The most characters that are kept of each text of an error or header. These texts are logged and shown, and any
 * server may have sent them. Each is reduced to one line without secrets, in case the service or a proxy echoes the
 * request.
 */
const maxLengths = { word: 100, id: 200, message: 300 } as const;
const maxFieldErrors = 50;

/** The interface does not name the header: these are tried in turn. */
const requestIdHeaders = ["x-request-id", "request-id", "svc-request-id"];

/** Reads an answer; never throws. `now` replaces a missing `Date` when `Retry-After` is measured. */
export function readAnswer(answer: HttpAnswer, now: Date): ReadAnswer {
  const content = parseContent(answer);
  const envelope = content.ok ? errorEnvelopeSchema.safeParse(content.body) : null;
  const error = envelope?.success === true ? envelope.data.error : null;
  const dateHeader = answer.header("date");
  const headerDate = dateHeader === null ? null : parseHttpDate(dateHeader);
  return {
    status: answer.status,
    requestId: orNull(error?.request_id, maxLengths.id) ?? headerRequestId(answer),
    // A proxy's error page carries the proxy's date, not the service's.
    date: content.ok ? headerDate : null,
    retryAfterMs: parseRetryAfter(answer.header("retry-after"), headerDate ?? now),
    content,
    error:
      error === null
        ? null
        : {
            type: foreignText(error.type, maxLengths.word),
            code: foreignText(error.code, maxLengths.word),
            message: foreignText(error.message, maxLengths.message),
            param: orNull(error.param, maxLengths.word),
            fieldErrors: (error.field_errors ?? []).slice(0, maxFieldErrors).map(readFieldError),
          },
  };
}

function headerRequestId(answer: HttpAnswer): string | null {
  for (const name of requestIdHeaders) {
    const value = answer.header(name);
    if (value !== null) return foreignText(value, maxLengths.id);
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
    const type = orNull(header("content-type"), maxLengths.word) ?? "none";
    const problem = `its answer is not JSON, or was cut short (${body.length} bytes, content type: ${type})`;
    return { ok: false, problem, transient: true };
  }
}

const orNull = (text: string | null | undefined, maxCharacters: number): string | null =>
  typeof text === "string" ? foreignText(text, maxCharacters) : null;

function readFieldError(given: {
  field?: string | null | undefined;
  code?: string | null | undefined;
  message?: string | null | undefined;
}): Partial<FieldError> {
  const field = orNull(given.field, maxLengths.word);
  const code = orNull(given.code, maxLengths.word);
  const message = orNull(given.message, maxLengths.message);
  return {
    ...(field === null ? {} : { field }),
    ...(code === null ? {} : { code }),
    ...(message === null ? {} : { message }),
  };
}
