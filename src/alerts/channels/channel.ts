import { createHash } from "node:crypto";
import type { AlertAction, AlertMessage } from "../message.ts";

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

export const wordsOfAction: Readonly<Record<AlertAction, string>> = {
  trigger: "alert",
  acknowledge: "acknowledged",
  resolve: "resolved",
};

const maxTitle = 250;

/** The title as every channel shows it: one line of bounded length, whatever values of others stand in it. Not escaped. */
export const titleOf = ({ title }: Pick<AlertMessage, "title">): string => oneLine(title, maxTitle);

/** The first line of a message: how urgent it is, or that it is over, and its title. Not escaped. */
export function headlineOf(message: AlertMessage): string {
  const { action, severity } = message;
  const head = action === "trigger" ? severity.toUpperCase() : wordsOfAction[action].toUpperCase();
  return `[${head}] ${titleOf(message)}`;
}

/** Hex digits of the SHA-256: short where a person compares, long where a machine does. */
export const digestOf = (text: string, digits: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, digits);

/** The key of a message as a header can carry it; another text is told by its hash. */
export function headerKey({ idempotencyKey }: AlertMessage): string {
  return /^[\x21-\x7e]{1,200}$/.test(idempotencyKey)
    ? idempotencyKey
    : `sha256:${digestOf(idempotencyKey, 64)}`;
}

/** By which a person in a chat knows a repeat. */
export const shortMark = ({ idempotencyKey }: AlertMessage): string =>
  `#${digestOf(idempotencyKey, 8)}`;

/**
 * Characters that nobody sees: marks that turn the direction of writing, blanks without width, tags. By them a text
 * shows something else than it holds, or two show the same. What joins two emoji into one may stay.
 */
const unseen =
  /[\u00AD\u061C\u180E\u200B\u200C\u200E\u200F\u202A-\u202E\u2060-\u206F\uFEFF]|\uDB40[\uDC00-\uDC7F]|(?<!\uFE0F|[\uDC00-\uDFFF\u2600-\u27BF])\u200D/g;
/** More marks on one letter than any language writes: they run over the lines above and below. */
const piledMarks = /(\p{M}{4})\p{M}+/gu;
const controls = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g;
/** Names that some chats wake everybody for, wherever they stand. */
const calls = /@(?=(?:channel|here|everyone|all)\b)/gi;

/**
 * What anybody may have written, as one line of at most `maxCharacters`: no line breaks and other control characters, no
 * unseen ones, no piles of accents, no halves of characters, no call to everybody. It still needs the escaping of its channel.
 */
export function oneLine(text: string, maxCharacters: number): string {
  const line = text
    .replace(unseen, "")
    .replace(piledMarks, "$1")
    .replace(controls, " ")
    .replace(calls, "@\u2060")
    .toWellFormed()
    .trim();
  if (line.length <= maxCharacters) return line;
  return `${line.slice(0, maxCharacters - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** A link that a person may be given: http or https, else nothing. */
export function safeLink(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { protocol, href } = new URL(url);
  return /^https?:$/.test(protocol) ? href : null;
}
