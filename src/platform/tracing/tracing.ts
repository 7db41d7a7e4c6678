import { hash } from "node:crypto";
import type { Attributes, Link, Span, SpanContext } from "@opentelemetry/api";
import { onDemand } from "../on-demand.ts";
import { redactSecrets, shortenedTo } from "../redaction.ts";

/**
 * Spans by OpenTelemetry's interface alone. The SDK that exports them is loaded by `startTracing`, and only where it is
 * set; until then `isTracing` is false, and code that makes spans checks it first, so that disabled tracing costs
 * nothing.
 */

let deployment: string | null = null;

/** Whether spans are exported. */
export const isTracing = (): boolean => deployment !== null;

/**
 * Only for `startTracing`. @param name unique to the deployment, since derived ids depend on it; null: no more spans
 */
export function switchTracing(name: string | null): void {
  deployment = name;
}

/** Any longer text of an attribute is cut. */
const maxText = 255;

/** Attributes of a span: names of the semantic conventions where they have one, else `tallyhook.…`. */
export type Facts = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

export interface NewSpan {
  kind?: "server" | "consumer" | "producer" | "internal";
  facts: Facts;
  /** Spans that it follows from, or that follow from it. Nulls, and links beyond `maxLinks`, are left out. */
  links?: readonly (SpanContext | null)[];
  /** Default: now. */
  startedAt?: Date;
  /** Its ids, if others must know them before the span exists, or without communication: a `derivedContext`. */
  identity?: SpanContext;
  /** Part of the span in which it begins. Otherwise it is the root of a trace of its own. */
  isPart?: boolean;
}

/** The SDK's own limit, above which it drops links and warns each time. */
export const maxLinks = 128;

/** The numbers of the interface, which is loaded with the first span. */
const kinds = { internal: 0, server: 1, producer: 3, consumer: 4 } as const;
const flags = { none: 0, sampled: 1 } as const;
const failed = 2;

/** Begins a span, which `endSpan` ends. */
export function startSpan(
  name: string,
  { kind = "internal", facts, links = [], startedAt, identity, isPart = false }: NewSpan,
): Span {
  const known: Link[] = links
    .filter((each) => each !== null)
    .slice(0, maxLinks)
    .map((each) => ({ context: each }));
  nextIds = identity ?? null;
  try {
    return onDemand.openTelemetry.trace.getTracer("tallyhook").startSpan(name, {
      kind: kinds[kind],
      root: !isPart,
      attributes: attributesOf(facts),
      links: known,
      ...(startedAt === undefined ? {} : { startTime: startedAt }),
    });
  } finally {
    nextIds = null;
  }
}

/** @param failure why it failed, in words without personal data; null: it did not */
export function endSpan(span: Span | null, failure: string | null = null, facts: Facts = {}): void {
  if (span === null) return;
  span.setAttributes(attributesOf(facts));
  if (failure !== null) {
    span.setAttribute("error.type", boundedText(failure));
    span.setStatus({ code: failed });
  }
  span.end();
}

/**
 * Runs the work with the span as the active one: its log lines name it, and spans that are a part of it find it. So do
 * timers and loops that it starts, as long as they run: start them outside of it.
 */
export function withinSpan<T>(span: Span | null, work: () => T): T {
  if (span === null) return work();
  const { context, trace } = onDemand.openTelemetry;
  return context.with(trace.setSpan(context.active(), span), work);
}

function attributesOf(facts: Facts): Attributes {
  const attributes: Attributes = {};
  for (const [name, value] of Object.entries(facts)) {
    if (value === null || value === undefined) continue;
    if (typeof value === "string") attributes[name] = boundedText(value);
    else if (typeof value === "object") attributes[name] = value.slice(0, 50).map(boundedText);
    else attributes[name] = value;
  }
  return attributes;
}

/** Cuts first, since the text has any length and every span is redacted: no text here should hold a secret. */
const boundedText = (text: string): string => redactSecrets(shortenedTo(text, maxText)).toWellFormed();

let nextIds: SpanContext | null = null;

/** Read by the SDK's generator of ids: the ids given to the span being made; null: the generator makes them. */
export const idsOfNextSpan = (): SpanContext | null => nextIds;

/** Sources of a derived span: the event's bytes, its number, a message. These words never change. */
type Derived = "webhook" | "apply" | "alert";

/**
 * The ids of this deployment's one span for a thing. Any code that knows the thing can compute them and link to the
 * span; nothing is stored or passed on.
 */
export function derivedContext(of: Derived, thing: string): SpanContext {
  const hex = hash("sha256", JSON.stringify(["tallyhook", deployment, of, thing]), "hex");
  return {
    traceId: hex.slice(0, 32),
    spanId: hex.slice(32, 48),
    traceFlags: flags.sampled,
  };
}

/** The span of the delivery that brought these bytes first. */
export const webhookContext = (raw: Buffer): SpanContext => derivedContext("webhook", hash("sha256", raw, "hex"));

/** The span that applied an event of the inbox. */
export const appliedContext = (seq: number): SpanContext => derivedContext("apply", String(seq));

/**
 * Reads a header or a stored text in the form of W3C Trace Context. Null for anything that is not exactly one. In a
 * later version, only the parts of the first one are read, as the standard requires.
 */
export function parseTraceparent(text: unknown): SpanContext | null {
  if (typeof text !== "string" || text.length > maxText) return null;
  const match = traceparentForm.exec(text);
  const [, version, traceId = "", spanId = "", bits = "", more = ""] = match ?? [];
  if (match === null || version === "ff" || (version === "00" && more !== "")) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  const isSampled = (Number.parseInt(bits, 16) & 1) === 1;
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? flags.sampled : flags.none,
    isRemote: true,
  };
}

const traceparentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Writes the form that `parseTraceparent` reads. */
export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & 1).toString().padStart(2, "0")}`;

/** The fields of a log line that name the active span. A new object for each line, which is the caller's. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  if (deployment === null) return {};
  const active = onDemand.openTelemetry.trace.getActiveSpan()?.spanContext();
  return active === undefined ? {} : { trace_id: active.traceId, span_id: active.spanId };
}
