import type { Dispatcher } from "undici";

export type HttpMethod = "GET" | "POST" | "PATCH" | "DELETE";

export type HttpRequest = {
  method: HttpMethod;
  /** Includes the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string | Buffer | null;
};

/** An answer as received. `too_long`: the body was not read to its end. `cut_short`: it broke off, or took too long. */
export type HttpAnswer = {
  status: number;
  /** @param name in lower case */
  header: (name: string) => string | null;
  body: Buffer | "too_long" | "cut_short";
};

export type ExchangeLimits = { tryTimeoutMs: number; maxAnswerBytes: number };

/**
 * Sends one request and reads its answer. Follows no redirect. Rejects when no answer begins in time; the error never
 * quotes the request's headers.
 */
export async function exchange(
  dispatcher: Dispatcher,
  request: HttpRequest,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const deadline = startDeadline(limits.tryTimeoutMs, [signal]);
  try {
    const response = await dispatcher.request({
      method: request.method,
      path: request.path,
      headers: { ...request.headers },
      body: request.body,
      signal: deadline.signal,
    });
    const { headers } = response;
    return {
      status: response.statusCode,
      header: (name) => {
        const value = headers[name];
        return (Array.isArray(value) ? value[0] : value) ?? null;
      },
      body: await readBody(response.body, limits.maxAnswerBytes),
    };
  } finally {
    deadline.dispose();
  }
}

async function readBody(body: AsyncIterable<Buffer>, maxAnswerBytes: number): Promise<HttpAnswer["body"]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop destroys the stream, and with it the connection.
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) return "too_long";
      chunks.push(chunk);
    }
  } catch {
    return "cut_short";
  }
  return Buffer.concat(chunks, bytes);
}

/** A signal that aborts after a time, or when one of its parents does. The caller must `dispose` it. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** True once the time is up, as opposed to an abort by a parent. */
  expired(): boolean;
  dispose(): void;
}

/**
 * `AbortSignal.any` and `AbortSignal.timeout` would leave a listener and a timer behind for every call made under a
 * parent that lives as long as the process.
 */
export function startDeadline(ms: number, parents: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  let timeIsUp = false;
  const timer = setTimeout(() => {
    timeIsUp = true;
    controller.abort(new Error(`no answer within ${ms} ms`));
  }, ms);
  const follow = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  for (const parent of parents) {
    if (parent.aborted) controller.abort(parent.reason);
    else parent.addEventListener("abort", follow, { once: true });
  }
  return {
    signal: controller.signal,
    expired: () => timeIsUp,
    dispose() {
      clearTimeout(timer);
      for (const parent of parents) parent.removeEventListener("abort", follow);
    },
  };
}

/** The wait that an answer asks for (`parseRetryAfter`). @param now if the answer has no date */
export const retryAfterMsOf = ({ header }: Pick<HttpAnswer, "header">, now: Date): number | null =>
  parseRetryAfter(header("retry-after"), parseHttpDate(header("date") ?? "") ?? now);

/** The longest wait that any answer is believed. One bad answer, such as a proxy's, must not delay a read for years. */
export const longestWaitMs = 3_600_000;

/**
 * The wait that a `Retry-After` header asks for, in milliseconds, an hour at most; null when it is absent or
 * unreadable. Reads both forms of the header, seconds and an HTTP date. A date is measured against the `Date` of the
 * same answer, so that neither clock skew nor a service whose clock was moved changes the wait.
 */
export function parseRetryAfter(header: string | null, answeredAt: Date): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(longestWaitMs, Number(text) * 1_000);
  const until = parseHttpDate(text);
  if (until === null) return null;
  return Math.min(longestWaitMs, Math.max(0, until.getTime() - answeredAt.getTime()));
}

/** An HTTP date (RFC 9110, 5.6.7) in its current form or one of the two obsolete ones, or null. */
export function parseHttpDate(text: string): Date | null {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /.test(text)) return null;
  // The asctime form names no zone and would be read as local time.
  const instant = new Date(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(instant.getTime()) ? null : instant;
}
