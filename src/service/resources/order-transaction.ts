import { z } from "zod";

import { isPlausibleAmount, transactionStatuses, transactionTypes } from "./transaction.ts";
import {
  count,
  currencyCode,
  openEnum,
  signedMinorUnits,
  timestamp,
  wireId,
} from "./wire-types.ts";

/**
 * A transaction as an order carries it inline. The spec names `processor_transaction_id` and
 * `attempt_count` only; the others are assumed, so each may be absent and a reader must ask.
 */
export const orderTransactionSchema = z
  .looseObject({
    id: wireId.nullish(),
    type: openEnum(transactionTypes).nullish(),
    status: openEnum(transactionStatuses).nullish(),
    amount: signedMinorUnits
      .nullish()
      .describe("Minor units; negative is possible for refunds only"),
    currency: currencyCode.nullish(),
    processor_transaction_id: z.string().nullish(),
    attempt_count: count.nullish(),
    failure_code: z.string().nullish(),
    failure_reason: z.string().nullish(),
    created_at: timestamp.nullish(),
    updated_at: timestamp.nullish(),
  })
  .refine(isPlausibleAmount, { path: ["amount"], error: "must not be negative" });
