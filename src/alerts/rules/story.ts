import type { AlertFact, AlertSeverity } from "../message.ts";
import type { RuleName } from "../settings.ts";
import type { Headline } from "./wording.ts";

/** One step in the life of an alert, as the facts tell it. */
export interface Stage {
  /** Unique in its story, and the same whenever the same facts are known: `attempt:2`, `final`, `recovered`. */
  name: string;
  change: "opened" | "updated" | "resolved";
  /** When it happened, at the service or here; never when it was learned. */
  at: Date;
  rule: RuleName;
  severity: AlertSeverity;
  /** One line, without personal data and without ids. */
  title: string;
  /** The same in its parts: in a message, the customer stands between them. */
  headline?: Headline;
  advice: string;
  /** For the message alone. */
  facts: readonly AlertFact[];
  /** Whether it may wait for the next digest. */
  canWait: boolean;
  /** The earlier stage that asked the same: whoever was told of that one is not told of this one. */
  repeats?: string;
  /** Money or fraud that somebody has to see at once: a storm does not hold it back. */
  evenInStorm?: boolean;
}

export interface Subject {
  orderId: string | null;
  subscriptionId: string | null;
  transactionId: string | null;
  customerId: string | null;
}

export const noSubject: Subject = {
  orderId: null,
  subscriptionId: null,
  transactionId: null,
  customerId: null,
};

/** Alerts of one family that come in crowds are told as one incident (storm.ts). */
export type Family =
  | "declines"
  | "late-declines"
  | "dead"
  | "chargebacks"
  | "new-values"
  | "card-numbers"
  | "undescribed";

/**
 * The whole life of one alert so far: a function of what is known, never of the order in which it was learned. What is
 * learned later adds stages, and takes none away.
 */
export interface Story {
  key: string;
  subject: Subject;
  amountMinor: bigint | null;
  currency: string | null;
  /** Kept with the alert: nothing that tells who somebody is. */
  facts: Readonly<Record<string, string | number | boolean | null>>;
  family: Family | null;
  /** In the order of the story; at least one. */
  stages: readonly [Stage, ...Stage[]];
}

export const lastStage = ({ stages }: Pick<Story, "stages">): Stage => stages.at(-1) ?? stages[0];

/** The stage that says what the alert is about, also when it is over. */
export const gravestStage = ({ stages }: Pick<Story, "stages">): Stage =>
  stages.findLast(({ change }) => change !== "resolved") ?? stages[0];
