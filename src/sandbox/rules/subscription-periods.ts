import type { SubscriptionRecord, SubscriptionStatus } from "../records/subscription.ts";
import { billingDate } from "./billing-dates.ts";

export type PeriodFields = Pick<
  SubscriptionRecord,
  | "status"
  | "current_period_start"
  | "current_period_end"
  | "current_billing_cycle"
  | "next_billing_date"
  | "schedule"
>;

/**
 * Where a subscription stands once `cycle` is paid: period, cycle and next billing date move forward together (statement 411). With
 * its last cycle paid it is completed; past its end date nothing more is billed.
 */
export function periodsAfterPayment(
  subscription: Pick<
    SubscriptionRecord,
    "billing_cycle" | "total_billing_cycles" | "end_date" | "schedule"
  >,
  cycle: number,
  periods: number,
): PeriodFields {
  const { billing_cycle, total_billing_cycles, end_date, schedule } = subscription;
  const base = new Date(schedule.base);
  const start = billingDate(base, billing_cycle, periods).toISOString();
  const end = billingDate(base, billing_cycle, periods + 1).toISOString();
  const isLast = total_billing_cycles > 0 && cycle >= total_billing_cycles;
  const status: SubscriptionStatus = isLast ? "completed" : "active";
  const billsAgain = !isLast && (end_date === null || end <= end_date);
  return {
    status,
    current_period_start: start,
    current_period_end: end,
    current_billing_cycle: cycle,
    next_billing_date: billsAgain ? end : null,
    schedule: { base: schedule.base, periods },
  };
}
