/** Normalised decline reasons grouped by what can be done about them. */
export const failureCodeGroups = {
  soft: [
    "insufficient_funds",
    "do_not_honor",
    "card_limit_exceeded",
    "processor_declined",
    "issuer_unavailable",
    "unknown",
  ],
  card_data: ["expired_card", "incorrect_cvv", "invalid_account"],
  account_status: ["blocked_card", "closed_card", "contact_bank", "transaction_not_allowed"],
  fraud: ["lost_stolen_card", "fraud_suspected"],
  configuration: ["duplicate_transaction", "invalid_merchant_configuration", "validation_error"],
} as const;

export const failureCodes = [
  ...failureCodeGroups.soft,
  ...failureCodeGroups.card_data,
  ...failureCodeGroups.account_status,
  ...failureCodeGroups.fraud,
  ...failureCodeGroups.configuration,
] as const;
