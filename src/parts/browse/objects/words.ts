import type { Tone } from "../../../app/dashboard/elements/values.ts";

export const nouns: Readonly<Record<string, string>> = {
  order: "Order",
  transaction: "Transaction",
  subscription: "Subscription",
  customer: "Customer",
  chargeback: "Chargeback",
};

interface StatusWords {
  word: string;
  tone: Tone;
  /** The meaning for the customer, or the next step. */
  means: string;
}

const words = (word: string, tone: Tone, means: string): StatusWords => ({ word, tone, means });

const statuses: Readonly<Record<string, Readonly<Record<string, StatusWords>>>> = {
  order: {
    pending: words("Pending", "calm", "The payment has begun. The bank has not answered yet."),
    succeeded: words("Paid", "good", "The payment went through."),
    failed: words("Declined", "bad", "The payment did not go through. No money was taken."),
    voided: words("Voided", "calm", "The payment was canceled before it was settled."),
    partially_refunded: words("Partly refunded", "calm", "A part of the amount was given back."),
    refunded: words("Refunded", "calm", "The whole amount was given back."),
    refund_failed: words("Refund failed", "bad", "A refund did not go through. The customer has not received it."),
    chargeback: words("Charged back", "bad", "The customer's bank took the payment back. The dispute is open."),
    chargeback_accepted: words("Chargeback lost", "bad", "The dispute is over. The customer keeps the money."),
    chargeback_dismissed: words("Chargeback won", "good", "The dispute is over. The payment stands."),
  },
  transaction: {
    pending: words("Pending", "calm", "It is not settled yet."),
    in_progress: words("In progress", "calm", "The bank has not answered yet."),
    succeeded: words("Succeeded", "good", "It went through."),
    failed: words("Declined", "bad", "It did not go through. No money moved."),
    voided: words("Voided", "calm", "It was canceled before it was settled."),
    chargeback: words("Charged back", "bad", "The customer's bank took the payment back."),
  },
  subscription: {
    active: words("Active", "good", "It renews by itself."),
    paused: words("Paused", "calm", "It does not renew until it is resumed."),
    past_due: words("Past due", "warn", "Its last renewal was declined, and is tried again."),
    canceled: words("Canceled", "calm", "It does not renew any more."),
    completed: words("Completed", "calm", "All its billing cycles are over."),
    failed: words("Failed", "bad", "Its first payment did not go through."),
  },
  chargeback: {
    opened: words("Open", "bad", "The bank took the payment back. The dispute goes on."),
    accepted: words("Lost", "bad", "The customer keeps the money."),
    dismissed: words("Won", "good", "The payment stands."),
  },
};

/** A status in words. One that the interface lacks stays as it is. */
export function statusWords(resource: string, status: string): StatusWords {
  const known = Object.hasOwn(statuses, resource) ? statuses[resource] : undefined;
  const found = known !== undefined && Object.hasOwn(known, status) ? known[status] : undefined;
  return found ?? { word: status, tone: "calm", means: "" };
}

const groupNames: Readonly<Record<string, string>> = {
  "order.dunning": "retries, as events tell them",
  "transaction.inline": "as its order carries it",
  "subscription.detail": "failure and retries",
  "customer.absence": "no longer known to the service",
};

/** The words for a group of fields, where it is not the object itself; null where it is. */
export const groupWords = (group: string): string | null =>
  Object.hasOwn(groupNames, group) ? (groupNames[group] ?? null) : null;
