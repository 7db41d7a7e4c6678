import type { transactionStatuses, transactionTypes } from "../../service/resources/transaction.ts";
import type { FailureCode } from "../rules/cards.ts";
import type { Metadata } from "../store/table.ts";
import type { CardSummary } from "./payment-method.ts";

export type TransactionStatus = (typeof transactionStatuses)[number];

export type TransactionType = (typeof transactionTypes)[number];

export interface TransactionRecord {
  readonly id: string;
  readonly type: TransactionType;
  readonly status: TransactionStatus;
  /** Cents; positive for refunds too (statement 340). */
  readonly amount: number;
  readonly currency: string;
  readonly customer_id: string;
  readonly order_id: string | null;
  readonly payment_method: CardSummary | null;
  /** Null where nothing had to be charged, so that no processor was asked (statement 316). */
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
