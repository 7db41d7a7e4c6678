import { Pool } from "undici";
import { exchange } from "../../platform/http/exchange.ts";
import type { HttpAnswer } from "../../platform/http/exchange.ts";
import { parseHttpDate, parseRetryAfter } from "../../platform/http/retry-after.ts";
import type { Clock } from "../../platform/clock.ts";
import { bareHost, DestinationRefused } from "../destinations/destination-guard.ts";
import type { DestinationGuard } from "../destinations/destination-guard.ts";
import { DeliveryFailed } from "./channel.ts";

export interface HttpPost {
  readonly host: string;
  /** Resolves with the status in words. Throws `DeliveryFailed`; the path, which may be a secret, is never told. */
  post(
    body: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string>;
  close(): Promise<void>;
}

const limits = { tryTimeoutMs: 10_000, maxAnswerBytes: 16_384 };
const connections = 4;

/** Posts JSON to one address, on connections that the guard opens. Follows no redirect. */
export function createHttpPost(
  { guard, clock }: { guard: DestinationGuard; clock: Clock },
  url: URL,
  tryTimeoutMs: number = limits.tryTimeoutMs,
): HttpPost {
  const host = bareHost(url.hostname);
  const pool = new Pool(url.origin, { connections, connect: guard.connector });
  return {
    host,
    async post(body, headers, signal) {
      const request = {
        method: "POST" as const,
        path: url.pathname + url.search,
        headers: { "content-type": "application/json; charset=utf-8", ...headers },
        body,
      };
      let answer: HttpAnswer;
      try {
        answer = await exchange(pool, request, { ...limits, tryTimeoutMs }, signal);
      } catch (error) {
        throw unanswered(host, error);
      }
      if (answer.status >= 200 && answer.status < 300) return `${host} answered ${answer.status}`;
      throw refused(host, answer, clock.now());
    },
    close: () => pool.destroy(),
  };
}

/** No connection was made, so nothing has arrived. */
const neverConnected = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function unanswered(host: string, error: unknown): DeliveryFailed {
  if (error instanceof DestinationRefused) {
    return new DeliveryFailed(error.message, { isRetryable: true, mayHaveArrived: false });
  }
  const { code: given, name } = error as { code?: unknown; name?: unknown };
  const code = typeof given === "string" && /^[A-Z_0-9]{1,40}$/.test(given) ? given : null;
  const isTls = code !== null && /CERT|^ERR_TLS|^ERR_SSL|^UNABLE_TO/.test(code);
  const why = code ?? (name === "AbortError" ? "interrupted" : "no answer in time");
  return new DeliveryFailed(`${host} could not be reached (${why})`, {
    isRetryable: true,
    mayHaveArrived: code === null || !(isTls || neverConnected.has(code)),
  });
}

/** What is wrong with the message itself. A wrong address or key is mended there, and then this message goes too. */
const faultsOfTheMessage = new Set([400, 413, 415, 422]);

function refused(host: string, answer: HttpAnswer, now: Date): DeliveryFailed {
  const { status } = answer;
  const answeredAt = parseHttpDate(answer.header("date") ?? "") ?? now;
  const said = status >= 300 && status < 400 ? "; redirects are not followed" : wordOf(answer.body);
  return new DeliveryFailed(`${host} answered ${status}${said}`, {
    isRetryable: !faultsOfTheMessage.has(status),
    mayHaveArrived: false,
    retryAfterMs: parseRetryAfter(answer.header("retry-after"), answeredAt),
  });
}

/** Slack and its like answer with one word, such as `no_service`. More could hold anything. */
function wordOf(body: HttpAnswer["body"]): string {
  if (typeof body === "string") return "";
  const text = body.toString("utf8", 0, 60).trim();
  return /^[a-z]+(_[a-z]+){0,5}$/.test(text) ? ` ${text}` : "";
}
