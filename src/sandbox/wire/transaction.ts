import type { TransactionRecord } from "../records/transaction.ts";

/** A transaction (spec, Transaction). */
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
