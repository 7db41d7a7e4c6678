import type { Stage } from "./story.ts";
import { titled } from "./wording.ts";
import type { Headline, Wording } from "./wording.ts";

/** A renewal whose last retry is near. */
export interface NearLastRetry {
  /** For people. */
  amount: string;
  attempts: number;
  retryAt: Date;
}

/** How it is told, also on the day's list. Pure. */
export const lastTryHeadline = (amount: string, retryAt: string): Headline => ({
  lead: `${amount} renewal`,
  cause: `last try ${retryAt}`,
  next: "Write to the customer before it",
});

/** Tells the owner that one try is left. It goes on the day's list, which comes before it. Pure. */
export function lastRetryStage(
  { amount, attempts, retryAt }: NearLastRetry,
  { rules, localTime, shortTime }: Wording,
  at: Date,
): Stage {
  const { severity } = rules.dunning_last_retry;
  return {
    name: `last-retry:${attempts}`,
    change: "updated",
    at,
    rule: "dunning_last_retry",
    severity,
    ...titled(lastTryHeadline(amount, shortTime(retryAt))),
    advice:
      "Write or call: the card is tried once more, and then the renewal is lost. Ask for money on the account, " +
      "or for another way to pay.",
    facts: [
      { label: "Amount", value: amount },
      { label: "Declined so far", value: String(attempts) },
      { label: "Last try", value: localTime(retryAt) },
    ],
    canWait: severity !== "critical",
  };
}
