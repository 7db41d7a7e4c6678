/** Most urgent first. */
export const alertSeverities = ["critical", "error", "warning", "info"] as const;
export type AlertSeverity = (typeof alertSeverities)[number];

/** The effect of a message on its incident, on channels that keep incidents. */
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
  /** The item's alert. An erasure finds the item by it. */
  readonly alertId?: number;
}

/**
 * The content of one message to one channel. Plain text, in the order in which it is shown, already masked (e-mail
 * addresses masked, cards by their last four digits only). Each channel escapes it for its own markup.
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
  /** The remedy, or the consequence after the end; may be empty. */
  readonly advice: string;
  readonly links: readonly { readonly label: string; readonly url: string }[];
  /** When the reported thing happened: ISO 8601, UTC. */
  readonly at: string;
  readonly items?: readonly AlertItem[];
  /** The span that wrote it, as W3C Trace Context writes one; only where spans are made. */
  readonly traceparent?: string;
}

/**
 * A message as a channel shows it. A message in the outbox has no address, since the setting may change before it is
 * sent.
 */
export interface SentMessage extends AlertMessage {
  /** The place of its rule's section: a URL, or a path in the program's folder. */
  readonly runbook: string;
}

/** Where the runbooks are in the program's own folder: docs/runbooks.md has a section for each rule. */
const runbooksFile = "docs/runbooks.md";

/**
 * The place of a rule's section: below the address of RUNBOOKS_URL, else a path in the program's folder. Its anchor is
 * the rule's name.
 */
export const runbookOf = (rule: string, runbooksUrl: string | null): string =>
  `${runbooksUrl ?? runbooksFile}#${encodeURIComponent(rule)}`;
