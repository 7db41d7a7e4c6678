/** Most urgent first. */
export const alertSeverities = ["critical", "error", "warning", "info"] as const;
export type AlertSeverity = (typeof alertSeverities)[number];

/** What a message does to the incident that it belongs to, where a channel knows incidents. */
export const alertActions = ["trigger", "acknowledge", "resolve"] as const;
export type AlertAction = (typeof alertActions)[number];

export interface AlertFact {
  readonly label: string;
  readonly value: string;
}

/** One of the many that a digest or an incident tells of. */
export interface AlertItem {
  readonly title: string;
  readonly facts: readonly AlertFact[];
  /** The alert that it stands for: by it an erasure finds the item. */
  readonly alertId?: number;
}

/**
 * What one message to one channel says. Plain text, in the order in which it is shown, masked already (e-mail
 * addresses masked, of cards the last four digits alone); each channel escapes it for its own markup.
 */
export interface AlertMessage {
  /** The alert: the key of its rule and its occurrence. All its messages bear the same. */
  readonly dedupKey: string;
  /** Alert, channel and stage: the same on every repeat of the same message, and on no other. */
  readonly idempotencyKey: string;
  readonly action: AlertAction;
  readonly severity: AlertSeverity;
  readonly rule: string;
  readonly stage: string;
  /** One line: money or a count first, then the customer, never an id. */
  readonly title: string;
  readonly facts: readonly AlertFact[];
  /** What to do, or what matters now that it is over; empty where there is nothing to say. */
  readonly advice: string;
  readonly links: readonly { readonly label: string; readonly url: string }[];
  /** When what it tells of happened: ISO 8601, UTC. */
  readonly at: string;
  readonly items?: readonly AlertItem[];
}
