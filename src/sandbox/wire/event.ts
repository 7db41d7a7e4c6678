import type { EventFlaw, EventRecord, EventSubject } from "../events.ts";
import { customerBody } from "./customer.ts";
import { orderBody } from "./order.ts";
import { subscriptionBody } from "./subscription.ts";
import { webhookEndpointBody } from "./webhook-endpoint.ts";

/** The envelope of an event; the interface does not show it (statement 507). The same event gives the same bytes. */
export function eventBody(event: EventRecord, apiVersion: string): Record<string, unknown> {
  const object = objectOf(event.subject, event.created_at);
  return {
    id: event.id,
    type: event.type,
    created_at: event.created_at,
    api_version: apiVersion,
    data: { object: event.flaw === null ? object : flawed(object, event.flaw) },
  };
}

function objectOf(subject: EventSubject, nowIso: string): Record<string, unknown> {
  switch (subject.kind) {
    case "order":
      return { ...orderBody(subject.record), ...subject.extra };
    case "customer":
      return customerBody(subject.record);
    case "subscription":
      return subscriptionBody(subject.record);
    case "webhook_endpoint":
      return webhookEndpointBody(subject.record, nowIso);
  }
}

/** Optional in every kind of object that has it; the first one present is left out. */
const optionalFields = ["metadata", "shipping_address", "description"] as const;

function flawed(object: Record<string, unknown>, flaw: EventFlaw): Record<string, unknown> {
  if (flaw === "thin_object") return { id: object.id };
  if (flaw === "extra_fields") {
    return { ...object, sandbox_extra: { note: "a field that nobody knows", list: [1, 2, 3] } };
  }
  const missing = optionalFields.find((field) => field in object);
  const rest = Object.entries(object).filter(([field]) => field !== missing);
  return Object.fromEntries(rest);
}
