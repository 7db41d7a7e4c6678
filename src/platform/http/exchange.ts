import type { Dispatcher } from "undici";

import { startDeadline } from "./deadline.ts";

export type HttpMethod = "GET" | "POST" | "PATCH" | "DELETE";

export type HttpRequest = {
  method: HttpMethod;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string | null;
};

/** An answer as it came. A body that is too long is not read to its end. */
export type HttpAnswer = {
  status: number;
  /** @param name in lower case */
  header: (name: string) => string | null;
  body: Buffer | "too_long" | "cut_short";
};

export type ExchangeLimits = { tryTimeoutMs: number; maxAnswerBytes: number };

/**
 * One request and its answer. Follows no redirect. Rejects when no answer begins within the time; the
 * rejection says nothing of the request's headers.
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

async function readBody(
  body: AsyncIterable<Buffer>,
  maxAnswerBytes: number,
): Promise<HttpAnswer["body"]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop destroys the stream and with it the connection.
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
