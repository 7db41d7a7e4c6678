import type { Clock } from "../../../platform/clock.ts";
import type { DestinationGuard } from "../../../platform/http/destination-guard.ts";
import { type HttpAnswer, retryAfterMsOf } from "../../../platform/http/exchange.ts";
import { Unanswered, createGuardedPost } from "../../../platform/http/guarded-post.ts";
import { hostNames, settingsObject } from "../../../platform/setting-schemas.ts";
import { DeliveryFailed } from "./channel.ts";

/** The hosts that alerts may be sent to. */
export const destinationSettings = settingsObject({
  /** Reached only by https, at addresses of the public internet. */
  allowedHosts: hostNames("hooks.slack.com").default([
    "hooks.slack.com",
    "events.pagerduty.com",
    "events.eu.pagerduty.com",
  ]),
  /** May also be reached by http and at loopback and private addresses, but never at metadata or link-local ones. */
  privateHosts: hostNames("hooks.slack.com").default([]),
}).prefault({});

export interface HttpPost {
  readonly host: string;
  /** Resolves with the status as text. Throws `DeliveryFailed`. The path may be a secret and is never shown. */
  post(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

const limits = { tryTimeoutMs: 10_000, maxAnswerBytes: 16_384, connections: 4 };

/** Posts JSON to one address, on connections that the guard opens. Follows no redirects. */
export function createHttpPost(
  { guard, clock }: { guard: DestinationGuard; clock: Clock },
  url: URL,
  tryTimeoutMs: number = limits.tryTimeoutMs,
): HttpPost {
  const { host, post, close } = createGuardedPost(guard, url, { ...limits, tryTimeoutMs });
  return {
    host,
    close,
    async post(body, headers, signal) {
      const typed = { "content-type": "application/json; charset=utf-8", ...headers };
      let answer: HttpAnswer;
      try {
        answer = await post(body, typed, signal);
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error;
        const { message, mayHaveArrived } = error;
        throw new DeliveryFailed(message, { isRetryable: true, mayHaveArrived });
      }
      if (answer.status >= 200 && answer.status < 300) return `${host} answered ${answer.status}`;
      throw refused(host, answer, clock.now());
    },
  };
}

/**
 * Statuses that blame the message itself. A wrong address or key is corrected at the channel, and then the message goes
 * through.
 */
const faultsOfTheMessage = new Set([400, 413, 415, 422]);

function refused(host: string, answer: HttpAnswer, now: Date): DeliveryFailed {
  const { status } = answer;
  const said = status >= 300 && status < 400 ? "; redirects are not followed" : oneWordAnswer(answer.body);
  return new DeliveryFailed(`${host} answered ${status}${said}`, {
    isRetryable: !faultsOfTheMessage.has(status),
    mayHaveArrived: false,
    retryAfterMs: retryAfterMsOf(answer, now),
  });
}

/** Slack and similar services answer with one word, such as `no_service`. A longer answer could contain anything. */
function oneWordAnswer(body: HttpAnswer["body"]): string {
  if (typeof body === "string") return "";
  const text = body.toString("utf8", 0, 60).trim();
  return /^[a-z]+(_[a-z]+){0,5}$/.test(text) ? ` ${text}` : "";
}
