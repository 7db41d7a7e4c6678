import type { Condition } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";

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
    title: `An event is dead: ${type ?? "without a type"}, number ${seq}`,
    advice: `Look at it with "npx tallyhook events show ${seq}"; once the cause is mended: "npx tallyhook events replay ${seq}".`,
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
    title: `A new ${what} was seen: ${value}`,
    advice:
      "It was stored as it came and nothing is lost. Read the service's changelog for what it means; where it matters to " +
      "rules or reports, they need to learn it. Acknowledge this alert: it is not repeated.",
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
    title: `One event id came with ${bodies} different bodies`,
    advice: `All were stored and applied. Compare them with "npx tallyhook events show ${eventId}" and ask the service: ids should be unique.`,
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
    title: `A state of the ${resource} ${id} is dated ${changedAt.slice(0, 10)}: not believed`,
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
