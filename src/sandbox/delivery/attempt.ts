import type { Clock } from "../../platform/clock.ts";
import { signatureScheme } from "../../service/signature/signature-scheme.ts";
import type { EventRecord } from "../events.ts";
import type { WebhookEndpointRecord } from "../records/webhook-endpoint.ts";
import type { Settings } from "../settings.ts";
import { eventBody } from "../wire/event.ts";
import { liveSecrets } from "../wire/webhook-endpoint.ts";
import type { DeliveryAttempt } from "./delivery.ts";
import type { PostResult, Transport } from "./transport.ts";

export interface AttemptDeps {
  wallClock: Clock;
  transport: Transport;
  settings: () => Settings;
}

/**
 * Sends an event to an endpoint once, at `at` of the sandbox's time: signed with all secrets that are live then, spoiled after that where the attempt
 * is a corrupt one. Never rejects.
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

/** Whether a receiver took an event: any 2xx (spec, Events). */
export function isAccepted({ status }: DeliveryAttempt): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** The same bytes but for one bit in the middle: the signature no longer fits. */
function corrupted(body: Buffer): Buffer {
  const copy = Buffer.from(body);
  const middle = copy.length >>> 1;
  copy[middle] = (copy[middle] ?? 0) ^ 1;
  return copy;
}
