import type { LinkTemplates } from "./link-settings.ts";
import type { AlertMessage } from "./message.ts";
import type { Subject } from "./rules/story.ts";

/** The pages of what an alert is about. An id is one part of a path, whatever stands in it. Pure. */
export function linksOf(templates: LinkTemplates, subject: Subject): AlertMessage["links"] {
  const ids = [
    ["Order", templates.order, subject.orderId],
    ["Subscription", templates.subscription, subject.subscriptionId],
    ["Customer", templates.customer, subject.customerId],
    ["Transaction", templates.transaction, subject.transactionId],
  ] as const;
  return ids.flatMap(([label, url, id]) => {
    if (url === undefined || id === null || /^\.*$/.test(id)) return [];
    return [{ label, url: url.replaceAll("{id}", () => encodeURIComponent(id.toWellFormed())) }];
  });
}
