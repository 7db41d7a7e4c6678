import type { failureCodes } from "../../../../core/contract/decline-codes.ts";
import type { VaultedCard } from "./payment-method.ts";

export type FailureCode = (typeof failureCodes)[number];

/** A gateway's answer to a charge or a refund; null is an approval. */
export type Outcome = { code: FailureCode; reason: string } | null;

export interface TestCard {
  /** The published test number with this behaviour, if any. */
  number?: string;
  last4: string;
  brand: string;
  /** The n-th charge of a stored card has the n-th outcome; the last one repeats. */
  charges: readonly Outcome[];
  /** The same for refunds. */
  refunds: readonly Outcome[];
  /** Whether a chargeback follows a successful charge. */
  chargeback: boolean;
}

const reasons: Record<FailureCode, string> = {
  insufficient_funds: "The card has insufficient funds.",
  do_not_honor: "The card issuer declined the charge without a reason.",
  card_limit_exceeded: "The charge exceeds the limit of the card.",
  processor_declined: "The processor declined the charge.",
  issuer_unavailable: "The card issuer could not be reached.",
  unknown: "The charge was declined for an unknown reason.",
  expired_card: "The card has expired.",
  incorrect_cvv: "The security code of the card is incorrect.",
  invalid_account: "The card account is invalid.",
  blocked_card: "The card is blocked.",
  closed_card: "The card account is closed.",
  contact_bank: "The cardholder must contact the bank.",
  transaction_not_allowed: "The card does not allow this kind of charge.",
  lost_stolen_card: "The card was reported lost or stolen.",
  fraud_suspected: "The charge is suspected to be fraudulent.",
  duplicate_transaction: "A charge with the same details was submitted a moment ago.",
  invalid_merchant_configuration: "The merchant account is not configured for this charge.",
  validation_error: "The processor rejected a submitted field.",
};

function decline(code: FailureCode, reason = reasons[code]): Outcome {
  return { code, reason };
}

const refusedRefund = decline("issuer_unavailable", "The refund could not be processed.");

function card(brand: string, number: string, charge: Outcome = null): TestCard {
  return {
    number,
    last4: number.slice(-4),
    brand,
    charges: [charge],
    refunds: [null],
    chargeback: false,
  };
}

/** A Visa card without a published number, for behaviour that the published ones lack. */
function sequence(last4: string, charges: readonly Outcome[]): TestCard {
  return { last4, brand: "visa", charges, refunds: [null], chargeback: false };
}

/**
 * Tokens of test cards. The service names `card_visa`, `card_visa_declined` and `card_insufficient_funds`. The other
 * names are the sandbox's: one for every published test number, one for every other failure code, and cards whose
 * outcome changes from charge to charge.
 */
export const testCards: Readonly<Record<string, TestCard>> = {
  card_visa: card("visa", "4111111111111111"),
  card_mastercard: card("mastercard", "5431111111111111"),
  card_amex: card("amex", "341111111111111"),
  card_discover: card("discover", "6011601160116611"),
  card_visa_declined: card("visa", "4000000000000002", decline("processor_declined")),
  card_mastercard_declined: card("mastercard", "5105105105105100", decline("processor_declined")),
  card_insufficient_funds: card("visa", "4000000000009995", decline("insufficient_funds")),
  card_expired: card("visa", "4000000000000069", decline("expired_card")),
  card_processing_error: card(
    "visa",
    "4000000000000119",
    decline("processor_declined", "A processing or network error occurred."),
  ),
  card_incorrect_cvv: card("visa", "4000000000000127", decline("incorrect_cvv")),
  card_chargeback: { ...card("visa", "4000000000000259"), chargeback: true },
  card_do_not_honor: sequence("9001", [decline("do_not_honor")]),
  card_limit_exceeded: sequence("9002", [decline("card_limit_exceeded")]),
  card_issuer_unavailable: sequence("9003", [decline("issuer_unavailable")]),
  card_unknown: sequence("9004", [decline("unknown")]),
  card_invalid_account: sequence("9005", [decline("invalid_account")]),
  card_blocked: sequence("9006", [decline("blocked_card")]),
  card_closed: sequence("9007", [decline("closed_card")]),
  card_contact_bank: sequence("9008", [decline("contact_bank")]),
  card_transaction_not_allowed: sequence("9009", [decline("transaction_not_allowed")]),
  card_lost_stolen: sequence("9010", [decline("lost_stolen_card")]),
  card_fraud_suspected: sequence("9011", [decline("fraud_suspected")]),
  card_duplicate_transaction: sequence("9012", [decline("duplicate_transaction")]),
  card_invalid_merchant_configuration: sequence("9013", [decline("invalid_merchant_configuration")]),
  card_validation_error: sequence("9014", [decline("validation_error")]),
  card_declined_once: sequence("9101", [decline("insufficient_funds"), null]),
  card_declined_twice: sequence("9102", [decline("insufficient_funds"), decline("do_not_honor"), null]),
  card_renewal_declined_once: sequence("9103", [null, decline("insufficient_funds"), null]),
  card_renewal_declined_twice: sequence("9104", [
    null,
    decline("card_limit_exceeded"),
    decline("insufficient_funds"),
    null,
  ]),
  card_renewal_declined: sequence("9105", [null, decline("insufficient_funds")]),
  card_renewal_lost: sequence("9106", [null, decline("lost_stolen_card")]),
  card_refund_failed_once: { ...sequence("9201", [null]), refunds: [refusedRefund, null] },
  card_refund_failed: { ...sequence("9202", [null]), refunds: [refusedRefund] },
};

/** The outcome of the n-th charge or refund, counted from 0. It is decided at the charge, not at vaulting. */
export function outcomeOf(outcomes: readonly Outcome[], n: number): Outcome {
  return outcomes[Math.min(n, outcomes.length - 1)] ?? null;
}

/** A card's behaviour in words for people: each charge, its refunds, what follows. */
export function behaviourOf({ charges, refunds, chargeback }: TestCard): string {
  const told = [`charges: ${inTurn(charges)}`];
  if (refunds.some((refund) => refund !== null)) told.push(`refunds: ${inTurn(refunds)}`);
  if (chargeback) told.push("a chargeback follows");
  return told.join("; ");
}

function inTurn(outcomes: readonly Outcome[]): string {
  return outcomes.map((outcome) => outcome?.code ?? "approved").join(", then ");
}

const byNumber = new Map(
  Object.entries(testCards).flatMap(([token, { number }]) => (number === undefined ? [] : [[number, token] as const])),
);

/** Brands by their leading digits; the first match counts. */
const brands: readonly (readonly [RegExp, string])[] = [
  [/^4/, "visa"],
  [/^(5[1-5]|2[2-7])/, "mastercard"],
  [/^3[47]/, "amex"],
  [/^(6011|64[4-9]|65)/, "discover"],
  [/^3(0[0-5]|[68])/, "diners"],
  [/^35/, "jcb"],
];

/** Whether a number is a published test card. */
export function isTestCardNumber(number: string): boolean {
  return byNumber.has(number);
}

/**
 * The vault's record of a card: everything but its number. Charges of a number that is not a published test card
 * succeed, those of other providers' test sets too.
 */
export function cardOfNumber(number: string, expiry: { month: number; year: number }): Omit<VaultedCard, "billing_id"> {
  const behaviour = byNumber.get(number) ?? "card_visa";
  const brand = brands.find(([pattern]) => pattern.test(number))?.[1] ?? "unknown";
  const exp = `${String(expiry.month).padStart(2, "0")}/${expiry.year}`;
  return { behaviour, last4: number.slice(-4), brand, exp };
}
