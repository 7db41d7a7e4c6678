import { tallyhook } from "../../../platform/command-line.ts";
import { failureCodeGroups } from "../../contract/decline-codes.ts";
import { oneLine } from "../../../platform/readable-text.ts";

export type DeclineGroup = keyof typeof failureCodeGroups | "unknown";

/** The group of remedies for a decline with this code; a code that is not listed is `unknown`. */
export function declineGroupOf(code: string | null): DeclineGroup {
  for (const [group, codes] of Object.entries(failureCodeGroups)) {
    if ((codes as readonly string[]).includes(code ?? "")) {
      return group as keyof typeof failureCodeGroups;
    }
  }
  return "unknown";
}

export const groupNames: Readonly<Record<DeclineGroup, string>> = {
  soft: "soft: a later attempt may succeed",
  card_data: "card data: these card details will not work again",
  account_status: "account: the customer's bank refuses the card",
  fraud: "fraud / security",
  configuration: "configuration: our fault, not the customer's",
  unknown: "unknown: the service does not document this code",
};

type DocumentedCode = (typeof failureCodeGroups)[keyof typeof failureCodeGroups][number];

const causes: Readonly<Record<DocumentedCode, string>> = {
  insufficient_funds: "insufficient funds",
  do_not_honor: "bank gave no reason",
  card_limit_exceeded: "card limit reached",
  processor_declined: "declined by the processor",
  issuer_unavailable: "bank not reachable",
  unknown: "no reason given",
  expired_card: "card expired",
  incorrect_cvv: "wrong security code",
  invalid_account: "card number not valid",
  blocked_card: "card blocked",
  closed_card: "card closed",
  contact_bank: "bank asks for a call",
  transaction_not_allowed: "card not allowed for this purchase",
  lost_stolen_card: "card lost or stolen",
  fraud_suspected: "fraud suspected",
  duplicate_transaction: "treated as a duplicate",
  invalid_merchant_configuration: "our merchant setup is wrong",
  validation_error: "our request was invalid",
};

/** The cause of a decline, in plain words. */
export function causeOf(code: string | null): string {
  if (code === null || code === "") return "no reason given";
  return Object.hasOwn(causes, code) ? causes[code as DocumentedCode] : `code ${oneLine(code, 24)}`;
}

export type DeclineKind = "one-time" | "first" | "renewal";

/** The request that a declined charge makes to people. Each is made once for a charge; `wait` asks nothing. */
export type DeclineRequest =
  | "wait"
  | "contact"
  | "new-card"
  | "call-bank"
  | "stop"
  | "page-engineering"
  | "ask-service";

/** The same in a few words, for lists. */
export const requestNames: Readonly<Record<DeclineRequest, string>> = {
  wait: "Nothing to do yet",
  contact: "Write to the customer",
  "new-card": "Ask for another card",
  "call-bank": "Tell the customer to call the bank",
  stop: "Do not charge again",
  "page-engineering": "Page engineering: the fault is ours",
  "ask-service": "Ask the service what the code means",
};

/** `contactsNow`: the attempt is late enough, or the amount high enough, to contact the customer. */
export function requestOf(
  group: DeclineGroup,
  { kind, contactsNow }: { kind: DeclineKind; contactsNow: boolean },
): DeclineRequest {
  switch (group) {
    case "soft":
      return kind === "renewal" && !contactsNow ? "wait" : "contact";
    case "card_data":
      return "new-card";
    case "account_status":
      return "call-bank";
    case "fraud":
      return "stop";
    case "configuration":
      return "page-engineering";
    case "unknown":
      return "ask-service";
  }
}

export interface DeclineAdvice {
  code: string | null;
  request: DeclineRequest;
  kind: DeclineKind;
  /** When the service retries, as text; null where it does not, or where that is unknown. */
  nextRetry: string | null;
  /** The next retry is the last one. */
  isLastRetryAhead: boolean;
}

/**
 * Advice for billing staff about a declined charge, with what they write to the customer. The interface cannot put a
 * new card on a subscription that is past due, since a retry charges the order's own card; the advice says so.
 */
export function declineAdvice(advice: DeclineAdvice): string {
  const said = requestText(advice);
  return advice.kind === "first"
    ? `${said} The service does not retry a first payment. Give no access and ship nothing until it is paid.`
    : said;
}

function nextTryText({ nextRetry, isLastRetryAhead }: DeclineAdvice): string {
  const when = nextRetry === null ? "" : ` on ${nextRetry}`;
  return isLastRetryAhead
    ? `The service retries this card one last time${when}. If that fails, the renewal is lost.`
    : `The service retries this card${when}.`;
}

function requestText(advice: DeclineAdvice): string {
  const { code, request, kind, nextRetry } = advice;
  switch (request) {
    case "wait":
      return `Nothing to do yet. The service retries by itself${nextRetry === null ? "" : ` on ${nextRetry}`}.`;
    case "contact":
      return `${softText(code)} ${kind === "renewal" ? nextTryText(advice) : "Ask them to pay again."}`;
    case "new-card":
      return kind === "renewal"
        ? `Write to the customer today and ask for another card: this one cannot be charged (${causeOf(code)}). ` +
            "The service has no documented way to put a new card on a past-due subscription, and its retries charge " +
            "the old one. Make a new order or subscription with the new card, and cancel this one."
        : `Tell the customer that this card cannot be charged (${causeOf(code)}). ` +
            "Ask them to pay with another card.";
    case "call-bank":
      return (
        `Tell the customer that their bank refuses the card (${causeOf(code)}). ` +
        "They can call the bank to have it accepted, or pay with another card." +
        (kind === "renewal" ? ` ${nextTryText(advice)}` : "")
      );
    case "stop":
      return (
        "Do not charge again. Give no access and ship nothing. " +
        (nextRetry === null ? "" : `Cancel the subscription, or the service charges the card again on ${nextRetry}. `) +
        "Check the customer's other orders. Refund those that look stolen before they are disputed."
      );
    case "page-engineering":
      return (
        `Do not write to the customer: the fault is ours. Page engineering. "${tallyhook("report declines")}" ` +
        "shows how many charges fail with this code."
      );
    case "ask-service":
      return (
        "The service sent a decline code that its documentation does not list. Look up the charge at the service, " +
        "and ask its support what the code means. Then write to the customer."
      );
  }
}

function softText(code: string | null): string {
  switch (code) {
    case "insufficient_funds":
      return "Write to the customer: their account had too little money.";
    case "card_limit_exceeded":
      return (
        "Write to the customer: the card has reached its limit. " +
        "They can ask the bank to raise it, or pay with another card."
      );
    case "issuer_unavailable":
      return "Write to the customer: their bank could not be reached. Another card may work.";
    default:
      return (
        "Write to the customer: their bank declined and gave no reason. " +
        "They can ask the bank to allow the payment, or pay with another card."
      );
  }
}
