import type { Condition } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";
import { counted } from "../../platform/counted.ts";
import { headlineText, short, withoutIds } from "./wording.ts";

type Rules = AlertSettings["rules"];

/** An event that is given up. Pure. */
export function deadEventCondition(
  rules: Rules,
  {
    eventId,
    seq,
    type,
    reason,
  }: { eventId: string; seq: number; type: string | null; reason: string },
  at: Date,
): Condition {
  return {
    key: `dead:${eventId}`,
    rule: "event_dead",
    severity: rules.event_dead.severity,
    title: headlineText({
      lead: `1 event could not be applied (${short(type ?? "no type", 30)}, number ${seq})`,
      cause: short(withoutIds(reason)),
    }),
    advice:
      `What it tells is missing in the mirror until then. "npx tallyhook events show ${seq}" shows it and why it ` +
      "failed; once the cause " +
      `is mended, "npx tallyhook events replay ${seq}".`,
    facts: [
      { label: "Event", value: eventId },
      { label: "Reason", value: reason },
    ],
    kept: { seq, event_type: type, reason },
    family: "dead",
    at,
  };
}

const places: Readonly<Record<string, string>> = {
  "event.type": "event type",
  "event.api_version": "schema version of events",
  "order.status": "status of orders",
  "order.currency": "currency of orders",
  "order.field": "field of orders",
  "order.failure_code": "decline code",
  "subscription.status": "status of subscriptions",
  "subscription.currency": "currency of subscriptions",
  "subscription.field": "field of subscriptions",
  "transaction.status": "status of transactions",
  "transaction.currency": "currency of transactions",
  "transaction.field": "field of transactions",
  "customer.field": "field of customers",
};

/** Something that the interface does not name, seen for the first time. It was kept verbatim. Pure. */
export function noveltyCondition(
  rules: Rules,
  { kind, value }: { kind: string; value: string },
  at: Date,
): Condition {
  const what = places[kind] ?? kind;
  return {
    key: `new-value:${kind}:${value}`,
    rule: "event_unknown",
    severity: rules.event_unknown.severity,
    title: headlineText({ lead: `Unknown ${what}`, cause: short(withoutIds(value)) }),
    advice:
      "It was stored as it came; nothing is lost. Read in the service's changelog what it means, and change " +
      "rules or reports that should " +
      'know it. It is told once: "npx tallyhook alerts ack" when that is done.',
    facts: [{ label: what, value }],
    kept: { kind, value },
    family: "new-values",
    at,
  };
}

/** One event id that came with different bytes. Pure. */
export function duplicateIdCondition(
  rules: Rules,
  { eventId, bodies }: { eventId: string; bodies: number },
  at: Date,
): Condition {
  return {
    key: `event-id:${eventId}`,
    rule: "event_duplicate_id",
    severity: rules.event_duplicate_id.severity,
    title: headlineText({
      lead: `${counted(bodies, "different event", "different events")} came under one id`,
      next: "Ask the service",
    }),
    advice:
      `All were stored and applied. "npx tallyhook events show ${eventId}" shows them side by side: send that to ` +
      "the service's support, " +
      "since an id should name one event.",
    facts: [
      { label: "Event", value: eventId },
      { label: "Bodies", value: String(bodies) },
    ],
    kept: { event_id: eventId, bodies },
    family: "new-values",
    at,
  };
}

/** The key of the alert about an object that was shown with a time that cannot be. */
export const futureStateKey = (resource: string, id: string): string => `future:${resource}:${id}`;

/** An event or an answer shows a state of a time that is not yet. Pure. */
export function futureStateCondition(
  rules: Rules,
  { resource, id, changedAt }: { resource: string; id: string; changedAt: string },
  at: Date,
): Condition {
  return {
    key: futureStateKey(resource, id),
    rule: "event_future",
    severity: rules.event_future.severity,
    title: `1 ${resource} is dated ${changedAt.slice(0, 10)}, in the future: not believed`,
    advice:
      "The mirror stays as it was, and the object is read from the service again. If the service itself shows this time, tell " +
      `its support, and have what else it shows written with "npx tallyhook heal ${resource} ${id} --from-service --reason …".`,
    facts: [
      { label: "Object", value: `${resource} ${id}` },
      { label: "Dated", value: changedAt },
    ],
    kept: { resource, id, changed_at: changedAt },
    at,
  };
}

/** Whose events change the mirror, or are known to change nothing (spec, Events and Webhook endpoints). */
const families: ReadonlySet<string> = new Set([
  "order",
  "subscription",
  "customer",
  "transaction",
  "webhook_endpoint",
]);

/** Whether events of this type are understood. Any type of a known family is: its object is what counts. Pure. */
export const isKnownType = (type: string): boolean =>
  families.has(type.split(".", 1)[0] ?? "") || /chargeback|dispute/i.test(type);
