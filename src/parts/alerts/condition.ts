import type { AlertFact, AlertSeverity } from "./message.ts";

/** Alerts of one family that come in large numbers are sent as one incident (hold-back.ts). */
export type Family =
  | "declines"
  | "late-declines"
  | "dead"
  | "chargebacks"
  | "new-values"
  | "card-numbers"
  | "undescribed";

/** Facts that are stored with an alert. They contain no personal data. */
export type StoredFacts = Readonly<Record<string, string | number | boolean | null>>;

/** A watch's report of a condition that is true now: its rule, severity and time are the watch's where omitted. */
export interface Begun {
  key: string;
  title: string;
  advice: string;
  /** For the message only. */
  facts: readonly AlertFact[];
  storedFacts?: StoredFacts;
  /**
   * Counts, and minor units by currency, that measure its growth: it is sent again each time one of them has at least
   * doubled since it was last sent.
   */
  measures?: Readonly<Record<string, number>>;
  family?: Family;
  /** It requires no action: the next digest is soon enough. */
  canWait?: boolean;
  severity?: AlertSeverity;
}

/** The message when a condition ends: that it is over, and what matters now. */
export interface End {
  title: string;
  advice: string;
  facts?: readonly AlertFact[];
  /** Whether it may wait for the next digest; not if absent. */
  canWait?: boolean;
}

export const atRisk = "minor units at risk in ";

/** The measure of an amount at risk, by currency. */
export const atRiskIn = (currency: string): string => `${atRisk}${currency}`;
