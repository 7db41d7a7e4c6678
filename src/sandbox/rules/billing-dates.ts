/** How often a subscription bills, resolved: a month-based cycle always has its day. */
export interface BillingCycle {
  interval: "day" | "month";
  interval_count: number;
  /** Day of month 1 to 31; null on day-based cycles. */
  anchor_day: number | null;
}

export const dayMs = 86_400_000;

/**
 * The n-th billing date after `start` (n = 0 is the start itself), in UTC, at the start's time of day.
 * Always counted from the start: a short month moves one date and not those that follow.
 * Source: spec, BillingCycle ("When the month is shorter, billing happens on the last day of that month").
 */
export function billingDate(start: Date, cycle: BillingCycle, n: number): Date {
  if (n === 0) return start;
  if (cycle.interval === "day") {
    return new Date(start.getTime() + n * cycle.interval_count * dayMs);
  }
  const anchorDay = cycle.anchor_day ?? start.getUTCDate();
  const date = new Date(start);
  date.setUTCDate(1);
  date.setUTCMonth(start.getUTCMonth() + n * cycle.interval_count);
  date.setUTCDate(Math.min(anchorDay, daysInMonth(date)));
  return date;
}

/** The first billing date counted from `start` that lies after `after`. */
export function nextBillingDateAfter(
  start: Date,
  cycle: BillingCycle,
  after: Date,
): { date: Date; n: number } {
  let n = 1;
  while (billingDate(start, cycle, n) <= after) n += 1;
  return { date: billingDate(start, cycle, n), n };
}

/** `signup_date`, and nothing at all, mean the day of `start` (spec, BillingCycle). */
export function resolveBillingCycle(
  sent: {
    interval: "day" | "month";
    interval_count: number;
    anchor_day?: number | "signup_date" | null | undefined;
  },
  start: Date,
): BillingCycle {
  const { interval, interval_count, anchor_day } = sent;
  if (interval === "day") return { interval, interval_count, anchor_day: null };
  const anchorDay = typeof anchor_day === "number" ? anchor_day : start.getUTCDate();
  return { interval, interval_count, anchor_day: anchorDay };
}

function daysInMonth(date: Date): number {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
}
