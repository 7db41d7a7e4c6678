import type { Condition, End } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";
import type { Subject } from "./story.ts";
import { noSubject } from "./story.ts";
import { headlineText, orderName, short } from "./wording.ts";

/** Something that alerts had to tell of and could not. */
export interface Undescribed {
  /** `order`, `transaction`, `subscription`, `customer`, or what it is about. */
  resource: string;
  id: string;
  /** As people know an order. */
  orderNumber: string | null;
  /** Minor units as they were shown: nothing is computed here. */
  money: string | null;
  /** Where to look. */
  command: string;
  /** Without values. */
  reason: string;
  /** What is to be told again, as JSON (`FailedNews`); null where what found it looks at it again by itself. */
  failed: string | null;
}

/**
 * Says that there is something to be told, and where to look. Made of as little as can be, so that what failed to be
 * described cannot fail again. Pure.
 */
export function undescribedCondition(
  rules: AlertSettings["rules"],
  { resource, id, orderNumber, money, command, reason, failed }: Undescribed,
  at: Date,
): Condition {
  const what = orderName(orderNumber) ?? resource;
  return {
    key: undescribedKey(resource, id),
    rule: "alert_undescribed",
    severity: rules.alert_undescribed.severity,
    title: headlineText({
      lead: money === null ? "1 alert could not be described" : short(money),
      cause: money === null ? `about ${what}` : `an alert about ${what} could not be described`,
    }),
    advice:
      `The data was applied, only the alert failed. Look at the ${resource} now, as nobody was told what happened: ` +
      `"${command}". The worker's log has the error. The alert is described again by itself, and this one ends then.`,
    facts: [
      { label: "About", value: `${resource} ${id}` },
      ...(money === null ? [] : [{ label: "Amount as it was shown", value: money }]),
      { label: "Reason", value: reason },
    ],
    kept: { resource, id, reason, ...(failed === null ? {} : { failed }) },
    subject: subjectOf(resource, id),
    family: "undescribed",
    at,
  };
}

export const undescribedKey = (resource: string, id: string): string =>
  `undescribed:${resource}:${id}`;

const subjectOf = (resource: string, id: string): Subject => ({
  ...noSubject,
  ...(resource === "order" ? { orderId: id } : {}),
  ...(resource === "transaction" ? { transactionId: id } : {}),
  ...(resource === "subscription" ? { subscriptionId: id } : {}),
  ...(resource === "customer" ? { customerId: id } : {}),
});

export const describedEnd: End = {
  title: "An alert that could not be described has been described",
  advice: 'What happened stands in an alert of its own: "npx tallyhook alerts list".',
};
