import type { Condition, End } from "./condition.ts";
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

/** Of an event that was replayed. Pure. */
export function deadEventEnd({ seq, type }: { seq: string; type: string | null }): End {
  return {
    title: headlineText({
      lead: `1 event was taken after all (${short(type ?? "no type", 30)}, number ${seq})`,
    }),
    advice:
      "The mirror has what it tells, or something newer. Whether others failed for the same cause: " +
      '"npx tallyhook events list --state dead".',
  };
}

export const healedByHandEnd: End = {
  title: "An object dated in the future was written by hand, as the service shows it",
  advice: "Who decided it and why is kept with the change. Nothing is left to do.",
};
