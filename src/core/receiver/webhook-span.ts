import type { ServerResponse } from "node:http";
import type { VerifiedEvent } from "../inbox/store-batch.ts";
import { endSpan, parseTraceparent, startSpan, webhookContext, withinSpan } from "../../platform/tracing/tracing.ts";

export interface TracedWebhook {
  state: { event: Pick<VerifiedEvent, "raw" | "eventId" | "type">; arrivedAt?: Date };
  /** `refused`: answered 503, so that it is sent again. */
  fate: "stored" | "duplicate" | "refused";
}

/**
 * Answers a webhook whose signature held, within its span, which began when it arrived. Before, there is none:
 * strangers make no spans, and their `traceparent` is not even read. The caller's own trace is linked and never
 * continued, so that no outsider decides what is sampled here, or writes into our traces. The delivery that stored the
 * bytes has the ids that follow from them, so any holder of the bytes can link to it; a repeat links to it.
 */
export async function withinWebhookSpan(
  res: ServerResponse,
  { state: { event, arrivedAt }, fate }: TracedWebhook,
  answer: () => unknown,
): Promise<void> {
  const first = webhookContext(event.raw);
  const span = startSpan("POST /webhooks", {
    kind: "server",
    facts: {
      "http.request.method": "POST",
      "http.route": "/webhooks",
      "http.request.body.size": event.raw.length,
      "tallyhook.event.id": event.eventId,
      "tallyhook.event.type": event.type,
      "tallyhook.webhook.fate": fate,
    },
    links: [parseTraceparent(res.req.headers["traceparent"]), fate === "duplicate" ? first : null],
    ...(arrivedAt === undefined ? {} : { startedAt: arrivedAt }),
    ...(fate === "stored" ? { identity: first } : {}),
  });
  try {
    await withinSpan(span, answer);
  } finally {
    const { statusCode } = res;
    const failure = statusCode >= 500 ? String(statusCode) : null;
    endSpan(span, failure, { "http.response.status_code": statusCode });
  }
}
