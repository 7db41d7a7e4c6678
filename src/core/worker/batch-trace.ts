import type { Span } from "@opentelemetry/api";
import { type EnvelopePaths, parseEventBody, readEventParts } from "../contract/event-envelope.ts";
import type { ClaimedEvent, CompletedEvent } from "../inbox/claim.ts";
import type { Clock } from "../../platform/clock.ts";
import { safeReason } from "../../platform/log.ts";
import {
  appliedContext,
  endSpan,
  maxLinks,
  startSpan,
  webhookContext,
  withinSpan,
} from "../../platform/tracing/tracing.ts";

/** The spans of one batch, from its claim to its commit. */
export interface BatchTrace {
  /** Runs what applies the claimed events, within the batch's span. Again where the transaction is repeated. */
  within(
    events: readonly ClaimedEvent[],
    apply: () => Promise<readonly CompletedEvent[]>,
  ): Promise<readonly CompletedEvent[]>;
  /** Ends the spans with the transaction. Throws the transaction's error. */
  until<T>(committed: Promise<T>): Promise<T>;
}

/**
 * Traces a batch as a trace of its own: it has as many callers as events. Each committed event has one, too, linked
 * with the batch both ways and with the webhook that brought it. Its ids follow from its number, so a handler that runs
 * on the change links to it without anything stored.
 */
export function traceBatch({ clock, places }: { clock: Clock; places: Readonly<EnvelopePaths> }): BatchTrace {
  const startedAt = clock.now();
  let batch: { span: Span; events: readonly ClaimedEvent[] } | null = null;
  let completed: readonly CompletedEvent[] = [];
  return {
    async within(events, apply) {
      if (batch !== null) endSpan(batch.span, "repeated");
      batch = null;
      if (events.length === 0) return apply();
      const span = startSpan("apply batch", {
        kind: "consumer",
        facts: {
          ...messaging,
          "messaging.batch.message_count": events.length,
        },
        startedAt,
      });
      batch = { span, events };
      completed = await withinSpan(span, apply);
      return completed;
    },
    async until(committed) {
      try {
        const result = await committed;
        if (batch !== null) endBatch(batch.span, batch.events);
        return result;
      } catch (error) {
        if (batch !== null) endSpan(batch.span, safeReason(error));
        throw error;
      }
    },
  };

  function endBatch(span: Span, events: readonly ClaimedEvent[]): void {
    const ends = new Map(completed.map((each) => [each.seq, each]));
    span.addLinks(events.slice(0, maxLinks).map(({ seq }) => ({ context: appliedContext(seq) })));
    for (const event of events) endEvent(span, event, ends.get(event.seq));
    endSpan(span);
  }

  function endEvent(batchSpan: Span, event: ClaimedEvent, end: CompletedEvent | undefined): void {
    const { id, type } = readEventParts(places, parseEventBody(event.raw));
    const span = startSpan("apply event", {
      kind: "consumer",
      facts: {
        ...messaging,
        "tallyhook.event.id": id,
        "tallyhook.event.type": type,
        "tallyhook.inbox.seq": event.seq,
        "tallyhook.event.state": end?.state,
        "tallyhook.event.attempt": event.attempts + 1,
        "tallyhook.resource.type": end?.resourceType,
      },
      links: [webhookContext(event.raw), batchSpan.spanContext()],
      startedAt,
      identity: appliedContext(event.seq),
    });
    endSpan(span, end?.state === "dead" ? "dead" : null);
  }
}

const messaging = {
  "messaging.system": "tallyhook",
  "messaging.operation.type": "process",
  "messaging.operation.name": "apply",
  "messaging.destination.name": "inbox",
} as const;

/** Runs the deferral of an event that failed alone, within a span of its own. */
export async function tracePostponed<T>(seq: number, work: () => Promise<T>): Promise<T> {
  const span = startSpan("postpone event", {
    kind: "consumer",
    facts: { ...messaging, "tallyhook.inbox.seq": seq },
    links: [],
  });
  try {
    return await withinSpan(span, work);
  } finally {
    endSpan(span);
  }
}
