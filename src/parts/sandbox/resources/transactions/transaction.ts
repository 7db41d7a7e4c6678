import type { transactionStatuses, transactionTypes } from "../../../../core/contract/resources/transactions.ts";
import type { Metadata } from "../../engine/store/table.ts";
import type { CardSummary } from "../payment-methods/payment-method.ts";
import type { FailureCode } from "../payment-methods/test-cards.ts";

export type TransactionStatus = (typeof transactionStatuses)[number];

export type TransactionType = (typeof transactionTypes)[number];

export interface TransactionRecord {
  readonly id: string;
  readonly type: TransactionType;
  readonly status: TransactionStatus;
  /** Cents; positive for refunds too. */
  readonly amount: number;
  readonly currency: string;
  readonly customer_id: string;
  readonly order_id: string | null;
  readonly payment_method: CardSummary | null;
  /** Null where there was no amount to charge and no processor was called. */
  readonly processor_transaction_id: string | null;
  readonly authorization_code: string | null;
  readonly attempt_count: number;
  readonly failure_code: FailureCode | null;
  readonly failure_reason: string | null;
  readonly description: string | null;
  readonly metadata: Metadata;
  readonly created_at: string;
  readonly updated_at: string;
}

export function transactionBody(transaction: TransactionRecord): Record<string, unknown> {
  return {
    id: transaction.id,
    type: transaction.type,
    status: transaction.status,
    amount: transaction.amount,
    currency: transaction.currency,
    customer_id: transaction.customer_id,
    order_id: transaction.order_id,
    payment_method: transaction.payment_method,
    processor_response: processorResponse(transaction),
    failure_reason: transaction.failure_reason,
    description: transaction.description,
    metadata: transaction.metadata,
    created_at: transaction.created_at,
    updated_at: transaction.updated_at,
  };
}

function processorResponse(transaction: TransactionRecord): unknown {
  if (transaction.processor_transaction_id === null) return null;
  const declined = transaction.failure_code !== null;
  return {
    transaction_id: transaction.processor_transaction_id,
    authorization_code: transaction.authorization_code,
    avs_result: declined ? null : "Y",
    cvv_result: transaction.failure_code === "incorrect_cvv" ? "N" : declined ? null : "M",
    response_code: declined ? "200" : "100",
    response_text: declined ? transaction.failure_code : "approved",
  };
}
