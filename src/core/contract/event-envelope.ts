import { z } from "zod";
import { openEnum, timestamp } from "./wire-types.ts";
import { canonicalTimestamp } from "./timestamp.ts";
import { asObject, isObject } from "./wire-types.ts";

/** Event types that the interface names. It does not list them all, so any other is possible. */
export const eventTypes = [
  "order.created",
  "order.succeeded",
  "order.failed",
  "order.refunded",
  "customer.created",
  "subscription.created",
  "subscription.charged",
  "subscription.updated",
  "subscription.billing.updated",
  "subscription.canceled",
] as const;

/** The interface does not name the chargeback event: a type with either word may be one. */
export const isDisputeType = (type: string): boolean => /chargeback|dispute/i.test(type);

/** The envelope of an event. The interface does not document it; this form is assumed. */
export const eventEnvelopeSchema = z.looseObject({
  id: z.string(),
  type: openEnum(eventTypes),
  created_at: timestamp,
  api_version: z.string().nullish(),
  data: z.looseObject({ object: z.looseObject({}) }),
});

/** Paths to the parts of an event in its body: keys joined by dots. A setting, since the form is assumed. */
export type EnvelopePaths = {
  id: string;
  type: string;
  createdAt: string;
  apiVersion: string;
  object: string;
};

export const defaultEnvelopePaths: Readonly<EnvelopePaths> = {
  id: "id",
  type: "type",
  createdAt: "created_at",
  apiVersion: "api_version",
  object: "data.object",
};

// A byte order mark is skipped. Bytes that are not UTF-8 make the body unreadable; none is silently replaced.
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The parsed body of an event, or undefined when it is not JSON in UTF-8. Never throws. */
export function parseEventBody(raw: Buffer): unknown {
  try {
    return JSON.parse(strictUtf8.decode(raw));
  } catch {
    return undefined;
  }
}

/** The parts of an event that could be read; null where one is absent or of a wrong type. */
export type EventParts = {
  id: string | null;
  type: string | null;
  /** In the fixed form of `canonicalTimestamp`. */
  createdAt: string | null;
  apiVersion: string | null;
  object: Readonly<Record<string, unknown>> | null;
};

/**
 * Reads the parts of a parsed event body of any shape. An authentic event is never refused for its content, so an
 * unreadable part is null and the caller decides. Never throws.
 */
export function readEventParts(places: Readonly<EnvelopePaths>, body: unknown): EventParts {
  const createdAt = textAt(body, places.createdAt);
  return {
    id: textAt(body, places.id),
    type: textAt(body, places.type),
    createdAt: createdAt === null ? null : canonicalTimestamp(createdAt),
    apiVersion: textAt(body, places.apiVersion),
    object: asObject(valueAt(body, places.object)) ?? null,
  };
}

function textAt(body: unknown, place: string): string | null {
  const value = valueAt(body, place);
  return typeof value === "string" ? value : null;
}

/** Reads own keys only, so that `constructor` and `__proto__` in a body or a setting find nothing. */
function valueAt(body: unknown, place: string): unknown {
  let value = body;
  for (const key of place.split(".")) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}
