import type { AlertMessage } from "../message.ts";

/** No channel shows more items of a message: longer lists are cut into several messages. */
export const maxItems = 500;

/** A place where people are told. It owns its connections. */
export interface Channel {
  readonly kind: string;
  /** The host that it speaks to; null where it speaks to none. */
  readonly host: string | null;
  /**
   * Resolves with what the other side answered, in a few words, once it has taken the message. Throws
   * `DeliveryFailed`. A message that is sent again bears the same key, so that a repeat can be told.
   */
  send(message: AlertMessage, options: { signal: AbortSignal }): Promise<string>;
  close(): Promise<void>;
}

export interface FailureFacts {
  /** False where the same message would be refused again, whatever becomes of the channel. */
  isRetryable: boolean;
  /** The other side may have it all the same: it was sent, and no answer came. */
  mayHaveArrived: boolean;
  /** How long the other side asks to wait. */
  retryAfterMs?: number | null;
}

/** A message was not taken. The words are fit for logs and for people: no address with a token in it, no personal data. */
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
