import { Agent, request } from "undici";
import { signatureScheme } from "../../../../core/contract/signature/signature-scheme.ts";
import type { Clock } from "../../../../platform/clock.ts";
import { type WebhookEndpointRecord, liveSecrets } from "../../resources/webhook-endpoints/webhook-endpoint.ts";
import { type EventRecord, eventBody } from "../event-log.ts";
import type { Settings } from "../settings.ts";
import type { DeliveryAttempt } from "./delivery-log.ts";

export interface AttemptDeps {
  wallClock: Clock;
  transport: Transport;
  settings: () => Settings;
}

/**
 * Sends an event to an endpoint once, at `at` of the sandbox's clock. It is signed with all secrets that are live then;
 * a corrupt attempt is damaged after signing. Never rejects.
 */
export async function attempt(
  { wallClock, transport, settings }: AttemptDeps,
  event: EventRecord,
  endpoint: WebhookEndpointRecord,
  { at, kind }: Pick<DeliveryAttempt, "at" | "kind">,
): Promise<PostResult> {
  const body = Buffer.from(JSON.stringify(eventBody(event, endpoint.api_version)));
  const signature = signatureScheme(settings().signature_scheme).sign({
    body,
    secrets: liveSecrets(endpoint, at),
    // Wall time: a receiver would refuse the time of a clock that was moved.
    at: wallClock.now(),
    messageId: event.id,
  });
  return transport.post(
    endpoint.url,
    { "content-type": "application/json", "user-agent": "svc-webhooks/1", ...signature },
    kind === "corrupt" ? corrupted(body) : body,
  );
}

/** Whether a receiver accepted an event: any 2xx. */
export function isAccepted({ status }: DeliveryAttempt): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** The same bytes with one bit flipped in the middle, so that the signature no longer matches. */
function corrupted(body: Buffer): Buffer {
  const copy = Buffer.from(body);
  const middle = copy.length >>> 1;
  copy[middle] = (copy[middle] ?? 0) ^ 1;
  return copy;
}

/**
 * Makes an attempt, unless the host was already found absent during the same jump of the clock. `jump` is null outside
 * of a jump.
 */
export type UnlessAbsent = (
  url: string,
  jump: number | null,
  attempt: () => Promise<PostResult>,
) => Promise<PostResult>;

/**
 * Tries an absent host once per jump of the clock. A jump over a year makes thousands of deliveries and retries within
 * seconds, and each failing attempt takes time. The first attempt to a host goes ahead of the others. After the jump
 * the host is tried again.
 */
export function createAbsentHosts(): UnlessAbsent {
  const firstAttempts = new Map<string, Promise<PostResult>>();
  let lastJump: number | null = null;
  return async (url, jump, attempt) => {
    if (jump === null) return attempt();
    if (jump !== lastJump) firstAttempts.clear();
    lastJump = jump;
    const host = new URL(url).hostname;
    const first = firstAttempts.get(host);
    if (first !== undefined) {
      const result = await first;
      return result.unreachable === "host" ? result : attempt();
    }
    const made = attempt();
    firstAttempts.set(host, made);
    return made;
  };
}

/** A receiver that does not answer within this time has failed. Wall time, independent of the sandbox's clock. */
const answerTimeoutMs = 30_000;
const connectTimeoutMs = 10_000;
const maxConnectionsPerOrigin = 256;
/** The host has no address, or cannot be reached. Finding that out can take seconds. */
const noHostCodes: readonly unknown[] = [
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
];

export interface PostResult {
  status: number | null;
  error: string | null;
  /**
   * No connection was made, so no other delivery could have been sent there then. `host`: nor to any other port of that
   * host, and each attempt takes time.
   */
  unreachable?: "port" | "host";
}

export interface Transport {
  /** Sends bytes and waits for the status. Never rejects; redirects are not followed. */
  post(url: string, headers: Record<string, string>, body: Buffer): Promise<PostResult>;
  close(): Promise<void>;
}

/**
 * Kept-alive connections, shared by all endpoints. A status that arrived in time counts, even if its body never ends.
 */
export function createTransport(timeoutMs = answerTimeoutMs): Transport {
  const agent = new Agent({
    connections: maxConnectionsPerOrigin,
    pipelining: 1,
    // Each exchange has one exact deadline that covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: connectTimeoutMs },
  });
  return {
    async post(url, headers, body) {
      const signal = AbortSignal.timeout(timeoutMs);
      let status: number | null = null;
      try {
        const sending = { dispatcher: agent, method: "POST", headers, body, signal } as const;
        const answer = await request(url, sending);
        status = answer.statusCode;
        await answer.body.dump();
        return { status, error: null };
      } catch (error) {
        if (status !== null) return { status, error: null };
        if (signal.aborted) return { status, error: `no answer within ${timeoutMs / 1000} s` };
        const message = error instanceof Error ? error.message : String(error);
        const unreachable = unreachablePart(error);
        return { status, error: message, ...(unreachable === null ? {} : { unreachable }) };
      }
    },
    close: () => agent.destroy(),
  };
}

function unreachablePart(error: unknown): "port" | "host" | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  if (error.code === "ECONNREFUSED") return "port";
  return noHostCodes.includes(error.code) ? "host" : null;
}
