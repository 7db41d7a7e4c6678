import { standardWebhooksScheme } from "../../../core/contract/signature/schemes/standard-webhooks.ts";
import { secretProblem } from "../../../core/contract/signature/verification.ts";
import { AttemptFailed, type Recipient } from "../dispatch/recipient.ts";
import type { Clock } from "../../../platform/clock.ts";
import { ConfigurationError } from "../../../platform/errors.ts";
import type { DestinationGuard } from "../../../platform/http/destination-guard.ts";
import { type HttpAnswer, retryAfterMsOf } from "../../../platform/http/exchange.ts";
import { Unanswered, createGuardedPost } from "../../../platform/http/guarded-post.ts";
import { ifSplitByComma } from "../../../platform/setting-kinds.ts";
import { recipientName } from "./destination-name.ts";
import type { DestinationSettings } from "./settings.ts";

/** A program that changes or webhooks are sent to. Owns its connections. */
export interface Destination extends Recipient {
  readonly settings: DestinationSettings;
  readonly host: string;
  /** Resolves once the subscriber has taken it. Throws `AttemptFailed`. */
  deliver(delivery: Delivery): Promise<void>;
  close(): Promise<void>;
}

export interface Delivery {
  /** The same at each attempt: by it a subscriber knows a repeat. Fit for a header. */
  id: string;
  body: Buffer;
  /** Sent in addition to those of Standard Webhooks. */
  headers: Readonly<Record<string, string>>;
}

export interface DestinationDeps {
  guard: DestinationGuard;
  clock: Clock;
  /** The value of a variable FORWARD_…; null where it is not set. */
  secretOf: (variable: string) => string | null;
}

/** Three days with the delays of the dispatch (5 s, doubled up to an hour, a quarter off on average). */
const attempts = 106;
const maxAnswerBytes = 16_384;

/**
 * Opens all destinations without contacting any. Throws one `ConfigurationError` with the remedy for each unusable
 * secret. It shows no value of a variable.
 */
export function openDestinations(
  destinations: Readonly<Record<string, DestinationSettings>>,
  deps: DestinationDeps,
): Destination[] {
  const opened = Object.entries(destinations).map(([name, settings]) => {
    const secrets = readSecrets(settings.secretFrom, deps);
    return typeof secrets === "string"
      ? { name, problem: secrets }
      : { destination: openDestination(name, settings, secrets, deps) };
  });
  const problems = opened.flatMap(({ name, problem }) =>
    problem === undefined ? [] : [`  - destination "${name}": ${problem}.`],
  );
  if (problems.length > 0) {
    throw new ConfigurationError(`Nothing can be forwarded as set up:\n${problems.join("\n")}`);
  }
  return opened.flatMap(({ destination }) => destination ?? []);
}

/** The secrets, the newest first, or why they are not usable. */
function readSecrets(variable: string, { secretOf }: Pick<DestinationDeps, "secretOf">): string[] | string {
  const value = secretOf(variable);
  if (value === null) {
    return `set ${variable} or ${variable}_FILE, such as to the output of: echo "whsec_$(openssl rand -base64 32)"`;
  }
  const secrets = value.split(",").map((each) => each.trim());
  const problem = secrets.map((each) => secretProblem(standardWebhooksScheme, each)).find((each) => each !== null);
  if (problem === undefined) return secrets;
  return `${variable} ${problem}${secrets.length > 1 ? ifSplitByComma : ""}`;
}

function openDestination(
  name: string,
  settings: DestinationSettings,
  secrets: readonly string[],
  { guard, clock }: DestinationDeps,
): Destination {
  const { concurrency, timeoutSeconds, from, url } = settings;
  const deadlineMs = timeoutSeconds * 1_000;
  const limits = { connections: concurrency, tryTimeoutMs: deadlineMs, maxAnswerBytes };
  const { host, post, close } = createGuardedPost(guard, new URL(url), limits);
  // A closed dispatch has waited for its requests.
  const { signal } = new AbortController();
  return {
    name: recipientName(name),
    from,
    concurrency,
    deadlineMs,
    attempts,
    settings,
    host,
    close,
    async deliver({ id, body, headers }) {
      const signature = standardWebhooksScheme.sign({
        body,
        secrets,
        at: clock.now(),
        messageId: id,
      });
      const all = { "content-type": "application/json", ...headers, ...signature };
      let answer: HttpAnswer;
      try {
        answer = await post(body, all, signal);
      } catch (error) {
        throw error instanceof Unanswered ? new AttemptFailed(error.message) : error;
      }
      const failure = failureOf(host, answer, clock.now());
      if (failure !== null) throw failure;
    },
  };
}

/** The meaning of an answer under Standard Webhooks; null for success. */
function failureOf(host: string, answer: HttpAnswer, now: Date): AttemptFailed | null {
  const { status } = answer;
  if (status >= 200 && status < 300) return null;
  const said = `${host} answered ${status}`;
  if (status === 410) return new AttemptFailed(`${said} Gone`, { isRefusal: true });
  if (status >= 300 && status < 400) {
    return new AttemptFailed(`${said}; redirects are not followed`);
  }
  const isBusy = status === 429 || status === 503;
  return new AttemptFailed(said, isBusy ? { holdMs: retryAfterMsOf(answer, now) } : {});
}
