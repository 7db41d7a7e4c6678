import { createHash } from "node:crypto";
import { headerKeyOf } from "../../../platform/http/header-value.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import type { AlertAction, AlertMessage } from "../message.ts";

/** No channel shows more items in one message. Longer lists are split into several messages. */
export const maxItems = 500;

/** A destination of messages. A channel owns its connections. A kind of channel shows messages with their runbooks. */
export interface Channel<Message extends AlertMessage = AlertMessage> {
  readonly kind: string;
  /** The host that the channel connects to; null where there is none. */
  readonly host: string | null;
  /**
   * Resolves with a short form of the answer once the other side has accepted the message. Throws `DeliveryFailed`. A
   * repeat has the same key, so that the receiver can recognize it.
   */
  send(message: Message, options: { signal: AbortSignal }): Promise<string>;
  close(): Promise<void>;
}

export interface FailureFacts {
  /** False where the same message would be refused again, even by a healthy channel. */
  isRetryable: boolean;
  /** The message was sent but no answer came, so it may have arrived. */
  mayHaveArrived: boolean;
  /** The wait that the other side asked for. */
  retryAfterMs?: number | null;
}

/** A message was not accepted. The text is fit for logs and for people: no address with a token, no personal data. */
export class DeliveryFailed extends Error implements FailureFacts {
  override readonly name = "DeliveryFailed";
  readonly isRetryable: boolean;
  readonly mayHaveArrived: boolean;
  readonly retryAfterMs: number | null;

  constructor(reason: string, { isRetryable, mayHaveArrived, retryAfterMs }: FailureFacts) {
    super(reason);
    this.isRetryable = isRetryable;
    this.mayHaveArrived = mayHaveArrived;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

export const wordsOfAction: Readonly<Record<AlertAction, string>> = {
  trigger: "alert",
  acknowledge: "acknowledged",
  resolve: "resolved",
};

const maxTitle = 250;

/** The title as every channel shows it: one line of bounded length, with any outside text. Not escaped. */
export const titleOf = ({ title }: Pick<AlertMessage, "title">): string => oneLine(title, maxTitle);

/** The first line of a message: its severity, or that the alert is over, and its title. Not escaped. */
export function headlineOf(message: AlertMessage): string {
  const { action, severity } = message;
  const head = action === "trigger" ? severity.toUpperCase() : wordsOfAction[action].toUpperCase();
  return `[${head}] ${titleOf(message)}`;
}

/** Hex digits of the SHA-256: short where a person compares, long where a machine does. */
export const digestOf = (text: string, digits: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, digits);

/** The key of a message if a header can carry it, else its hash. */
export const headerKey = ({ idempotencyKey }: AlertMessage): string => headerKeyOf(idempotencyKey);

/** A short mark by which a person in a chat recognizes a repeat. */
export const shortMark = ({ idempotencyKey }: AlertMessage): string => `#${digestOf(idempotencyKey, 8)}`;

/** A link that is safe to show: http or https; else null. */
export function safeLink(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { protocol, href } = new URL(url);
  return /^https?:$/.test(protocol) ? href : null;
}
