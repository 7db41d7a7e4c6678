import { safeReason } from "../../../platform/log.ts";
import {
  derivedContext,
  endSpan,
  parseTraceparent,
  startSpan,
  traceparentOf,
  withinSpan,
} from "../../../platform/tracing/tracing.ts";
import type { AlertMessage } from "../message.ts";

/**
 * Writes messages within a span, as a part of their cause's span where there is one. Each message gets the span's ids:
 * people see the trace's, and the sender links to the span.
 */
export async function withinWriteSpan<Row extends { message: AlertMessage }>(
  rows: readonly Row[],
  write: (rows: readonly Row[]) => Promise<void>,
): Promise<void> {
  const span = startSpan("write alerts", {
    kind: "producer",
    facts: {
      ...outbox,
      "messaging.operation.type": "create",
      "messaging.batch.message_count": rows.length,
      "tallyhook.alert.rules": [...new Set(rows.map(({ message }) => message.rule))],
    },
    links: rows.map(({ message }) => firstSendOf(message)),
    isPart: true,
  });
  const { traceId } = span.spanContext();
  const traceparent = traceparentOf(span.spanContext());
  const traced = rows.map((row) => {
    const facts = [...row.message.facts, { label: "Trace", value: traceId }];
    return { ...row, message: { ...row.message, facts, traceparent } };
  });
  try {
    await withinSpan(span, () => write(traced));
    endSpan(span);
  } catch (error) {
    endSpan(span, safeReason(error));
    throw error;
  }
}

/** Sends a message within a span, a trace of its own: it may be sent long after, and many times. */
export async function withinSendSpan<T extends { reason: string } | null>(
  { message, attempts, id, channel }: SentMessage,
  send: () => Promise<T>,
): Promise<T> {
  const span = startSpan("send alert", {
    kind: "producer",
    facts: {
      ...outbox,
      "messaging.operation.type": "send",
      "tallyhook.alert.channel": channel,
      "tallyhook.alert.rule": message.rule,
      "tallyhook.alert.stage": message.stage,
      "tallyhook.alert.message": id,
      "tallyhook.alert.attempt": attempts,
    },
    links: [parseTraceparent(message.traceparent)],
    ...(attempts === 1 ? { identity: firstSendOf(message) } : {}),
  });
  try {
    const failed = await withinSpan(span, send);
    endSpan(span, failed === null ? null : "not accepted");
    return failed;
  } catch (error) {
    endSpan(span, safeReason(error));
    throw error;
  }
}

interface SentMessage {
  id: string;
  channel: string;
  attempts: number;
  message: AlertMessage;
}

/** Computed when the message is written, before it is sent. */
const firstSendOf = ({ idempotencyKey }: Pick<AlertMessage, "idempotencyKey">) =>
  derivedContext("alert", idempotencyKey);

const outbox = {
  "messaging.system": "tallyhook",
  "messaging.destination.name": "outbox",
} as const;
