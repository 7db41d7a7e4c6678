import { failureCodeGroups } from "../../service/resources/failure-codes.ts";

export type DeclineGroup = keyof typeof failureCodeGroups | "unknown";

/** What can be done about a decline (spec, Declines are not errors); a code that is not listed is `unknown`. Pure. */
export function declineGroupOf(code: string | null): DeclineGroup {
  for (const [group, codes] of Object.entries(failureCodeGroups)) {
    if ((codes as readonly string[]).includes(code ?? "")) {
      return group as keyof typeof failureCodeGroups;
    }
  }
  return "unknown";
}

export const groupNames: Readonly<Record<DeclineGroup, string>> = {
  soft: "soft",
  card_data: "card data",
  account_status: "account status",
  fraud: "fraud / security",
  configuration: "configuration / system",
  unknown: "unknown",
};

export type DeclineKind = "one-time" | "first" | "renewal";

/**
 * What to do about a declined charge. The interface has no way to put a new card on a subscription that is past due: a
 * retry charges the order's own card (spec, retry), so that advice says so.
 */
export function declineAdvice(
  group: DeclineGroup,
  { kind, contactsNow, isFinal }: { kind: DeclineKind; contactsNow: boolean; isFinal: boolean },
): string {
  const parts = [groupAdvice(group, { kind, contactsNow: contactsNow || isFinal })];
  if (kind === "first") {
    parts.push("Nothing retries a first charge: hold fulfilment until it is paid.");
  }
  if (isFinal) {
    parts.push("No further retry follows: collect by other means, or cancel the subscription.");
  }
  return parts.join(" ");
}

function groupAdvice(
  group: DeclineGroup,
  { kind, contactsNow }: { kind: DeclineKind; contactsNow: boolean },
): string {
  switch (group) {
    case "soft":
      if (contactsNow) return "Contact the customer about the payment.";
      return kind === "renewal"
        ? "Wait for the next retry."
        : "A later try may succeed: ask the customer to try again.";
    case "card_data":
      return kind === "renewal"
        ? "Ask for a new card now. The service has no documented way to put it on a past-due subscription: " +
            "its retries charge the order's own card until that is removed, so a new order or subscription may be needed."
        : "Ask for a new card now.";
    case "account_status":
      return "The customer has to call the bank.";
    case "fraud":
      return "Do not retry. Hold fulfilment and review the customer's orders.";
    case "configuration":
      return "The fault is on our side: page engineering. Other charges may fail for the same reason.";
    case "unknown":
      return "The code is not a documented one: look the charge up at the service.";
  }
}
