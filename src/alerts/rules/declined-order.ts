/** What is known of an order that was declined at least once: all its states, whichever came first. */
export interface DeclinedOrder {
  id: string;
  orderNumber: string | null;
  customerId: string | null;
  status: string | null;
  totalMinor: bigint | null;
  currency: string | null;
  subscriptionId: string | null;
  cycle: number | null;
  cardBrand: string | null;
  cardLastFour: string | null;
  failureReason: string | null;
  /** Its sales, oldest first. */
  sales: readonly { status: string | null; at: Date; failureCode: string | null }[];
  /** Its states of status failed, oldest first. */
  failures: readonly { at: Date; failureCode: string | null }[];
  /** What `order.failed` said of retries, oldest first. */
  dunning: readonly {
    at: Date;
    attempt: number | null;
    nextRetryAt: Date | null;
    isRetryUnknown: boolean;
  }[];
  /** Its first state of a status that is neither pending nor failed. */
  settledAt: Date | null;
  subscription: {
    status: string | null;
    canceledAt: Date | null;
    /** What the detailed subscription says; null where it was never seen. */
    detail: { attempt: number | null; nextRetryAt: Date | null } | null;
  } | null;
}

export interface Attempt {
  number: number;
  at: Date;
  failureCode: string | null;
}

/**
 * The declined attempts. The order's own sales count first, since every look at the order shows them all; then what
 * events said of attempts; then the states alone. Pure.
 */
export function declinedAttempts({ sales, failures, dunning }: DeclinedOrder): Attempt[] {
  const attempts = new Map<number, Attempt>();
  const codeAt = (at: Date): string | null =>
    failures.findLast((failure) => failure.at <= at)?.failureCode ??
    failures[0]?.failureCode ??
    null;
  if (sales.length === 0 && dunning.every(({ attempt }) => attempt === null)) {
    for (const [n, { at, failureCode }] of failures.entries()) {
      attempts.set(n + 1, { number: n + 1, at, failureCode });
    }
  }
  for (const { attempt, at } of dunning) {
    if (attempt === null || attempt < 1 || attempts.has(attempt)) continue;
    attempts.set(attempt, { number: attempt, at, failureCode: codeAt(at) });
  }
  for (const [n, { status, at, failureCode }] of sales.entries()) {
    if (status !== "failed") continue;
    attempts.set(n + 1, { number: n + 1, at, failureCode: failureCode ?? codeAt(at) });
  }
  return [...attempts.values()].sort((a, b) => a.number - b.number);
}

/** When a retry follows the last attempt; null: none does. */
export type NextRetry = Date | null | "unknown";

/**
 * What is known of the retry after attempt `number`: from the attempt's own event, or from the subscription while it
 * speaks of this attempt. A key that was missing is unknown, not null. Pure.
 */
export function nextRetryAfter(
  { dunning, subscription }: DeclinedOrder,
  number: number,
): NextRetry {
  const told = dunning.findLast(
    ({ attempt, isRetryUnknown }) => !isRetryUnknown && (attempt ?? number) >= number,
  );
  if (told !== undefined) return told.nextRetryAt;
  const detail = subscription?.status === "past_due" ? subscription.detail : null;
  return detail !== null && detail?.attempt === number ? detail.nextRetryAt : "unknown";
}

/** When the order was paid after all; null while it was not. */
export function paidAt({ sales, settledAt }: DeclinedOrder): Date | null {
  const paid = sales.find(({ status }) => status !== null && !unpaid.has(status));
  return paid?.at ?? settledAt;
}

const unpaid: ReadonlySet<string> = new Set(["failed", "pending", "in_progress"]);

/** Of a first charge the cycle is null, or 1 once it is paid; a retry that is planned shows a renewal. */
export const isFirstCharge = ({ cycle, dunning }: DeclinedOrder): boolean =>
  cycle === null || (cycle <= 1 && dunning.every(({ nextRetryAt }) => nextRetryAt === null));
