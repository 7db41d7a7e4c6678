import type { InboxTrace } from "../inbox/queries.ts";
import type { Resource } from "../mirror/observation.ts";
import { bookkeeping } from "./differences.ts";
import type { Difference, FindingCause, FindingClass } from "./findings.ts";

export interface CauseFacts {
  class: FindingClass;
  resource: Resource;
  differences: readonly Difference[];
  /** When the service says that the object changed. */
  changedAt: Date;
  /** What the inbox knows of the object, newest first. */
  events: readonly InboxTrace[];
  /** The mirror's history knows the very state that the service shows. */
  isKnownState: boolean;
}

/** Fields whose change has an event that the interface names (spec, Events). */
const announced: Readonly<Record<Resource, ReadonlySet<string>>> = {
  order: new Set(["status", "total", "failure_code"]),
  transaction: new Set(["status", "amount"]),
  subscription: new Set([
    "status",
    "current_billing_cycle",
    "next_billing_date",
    "current_period_end",
    "payment_method_id",
    "canceled_at",
    "amount",
    "plan_id",
  ]),
  customer: new Set([]),
};

/** No event tells that all cycles of a subscription are over (spec, States): from then on nothing is billed next. */
const endOfSubscription: Readonly<Record<string, string | null>> = {
  status: "completed",
  next_billing_date: null,
};

function isAnnounced({ resource, differences }: CauseFacts): boolean {
  const isOver =
    resource === "subscription" &&
    differences.some(({ field, service }) => field === "status" && service === "completed");
  return differences.some(
    ({ field, service }) =>
      announced[resource].has(field) && !(isOver && endOfSubscription[field] === service),
  );
}

/** Why mirror and service differ, as far as the evidence goes. Pure. */
export function causeOf(facts: CauseFacts): FindingCause {
  if (facts.class === "missing_there") return "out_of_band_edit";
  // The mirror was told, and shows something else.
  if (facts.class === "mismatch") return facts.isKnownState ? "out_of_band_edit" : "unexplained";
  const { changedAt, events } = facts;
  const told = events.some(({ createdAt }) => createdAt !== null && createdAt >= changedAt);
  if (facts.isKnownState || told) return "our_fault";
  const wasToBeTold =
    facts.class === "missing_here" ||
    isAnnounced(facts) ||
    // Nothing changes an order but its charges and refunds (spec, What the service does): a second partial refund
    // shows in its time alone.
    (facts.resource === "order" && facts.differences.every(({ field }) => bookkeeping.has(field)));
  return wasToBeTold ? "missed_webhook" : "out_of_band_edit";
}
