/** Most urgent first. */
export const alertSeverities = ["critical", "error", "warning", "info"] as const;
export type AlertSeverity = (typeof alertSeverities)[number];

/** What a message does to its incident, on channels that keep incidents. */
export const alertActions = ["trigger", "acknowledge", "resolve"] as const;
export type AlertAction = (typeof alertActions)[number];

export interface AlertFact {
  readonly label: string;
  readonly value: string;
}

/** One of the many alerts that a digest or a storm's list shows. */
export interface AlertItem {
  readonly title: string;
  readonly facts: readonly AlertFact[];
  /** The alert that the item stands for. An erasure finds the item by it. */
  readonly alertId?: number;
}

/**
 * What one message to one channel says. Plain text, in the order in which it is shown, already masked (e-mail addresses
 * masked, cards by their last four digits only). Each channel escapes it for its own markup.
 */
export interface AlertMessage {
  /** The alert: the key of its rule and its occurrence. All messages of the alert share it. */
  readonly dedupKey: string;
  /** Alert, channel and transition: the same on every repeat of this message, and on no other message. */
  readonly idempotencyKey: string;
  readonly action: AlertAction;
  readonly severity: AlertSeverity;
  readonly rule: string;
  readonly stage: string;
  /** One line: an amount or a count first, then the customer, never an id. */
  readonly title: string;
  readonly facts: readonly AlertFact[];
  /** What to do, or what matters after the end; empty where there is nothing to say. */
  readonly advice: string;
  readonly links: readonly { readonly label: string; readonly url: string }[];
  /** When the reported thing happened: ISO 8601, UTC. */
  readonly at: string;
  readonly items?: readonly AlertItem[];
  /** The span that wrote it, as W3C Trace Context writes one; only where spans are made. */
  readonly traceparent?: string;
}

/** A message as a channel shows it. What waits in the outbox has no address: the setting may change meanwhile. */
export interface SentMessage extends AlertMessage {
  /** Where the section about its rule is: a URL, or a path in the program's folder. */
  readonly runbook: string;
}
