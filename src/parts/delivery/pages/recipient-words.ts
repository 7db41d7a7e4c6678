import { tallyhook } from "../../../platform/command-line.ts";
import type { HandlerRow } from "../dispatch/manage-handlers.ts";
import { deliveryErrors, handlerErrors } from "../dispatch/own-errors.ts";
import { type Html, html } from "../../../platform/html.ts";
import { type Tone, outside, state } from "../../../app/dashboard/elements/values.ts";
import { hiddenText } from "../../../app/dashboard/elements/personal.ts";

/** A handler or a destination, as pages call it. */
export interface RecipientWords {
  /** Without the dispatch's prefix. */
  name: string;
  noun: "handler" | "destination";
  item: string;
  items: string;
  /** The command in front of `show`, `pause` and the like. */
  command: string;
  /** Our own errors, with remedies. */
  ownErrors: Readonly<Record<string, string>>;
}

export interface RecipientKinds {
  /** Whether the part of handlers is there. */
  hasHandlers: boolean;
  /** Which destination it is that the dispatch knows by a name; null for a handler. Absent without forwarding. */
  destinationOf?: ((recipient: string) => string | null) | undefined;
}

/** Null for one whose part is absent. */
export function recipientWords(
  recipient: string,
  { hasHandlers, destinationOf }: RecipientKinds,
): RecipientWords | null {
  const destination = destinationOf?.(recipient) ?? null;
  if (destination !== null) {
    return {
      name: destination,
      noun: "destination",
      item: "delivery",
      items: "deliveries",
      command: tallyhook("forward"),
      ownErrors: deliveryErrors,
    };
  }
  // The names of other recipients have a colon, which a handler's cannot have.
  if (!hasHandlers || recipient.includes(":")) return null;
  return {
    name: recipient,
    noun: "handler",
    item: "change",
    items: "changes",
    command: tallyhook("handlers"),
    ownErrors: handlerErrors,
  };
}

const pauses: Readonly<Record<NonNullable<HandlerRow["paused_by"]>, { words: string; tone: Tone }>> = {
  person: { words: "paused", tone: "warn" },
  failures: { words: "paused: it fails for all", tone: "bad" },
  subscriber: { words: "paused: it wants nothing more", tone: "bad" },
};

/** A person's reason is shown to visitors who may read such texts. */
export function recipientState(
  { paused_by: by, pause_reason: reason }: Pick<HandlerRow, "paused_by" | "pause_reason">,
  { readsTexts }: { readsTexts: boolean },
): Html {
  if (by === null) return state("on", "good");
  const { words, tone } = pauses[by];
  const isShown = readsTexts || by !== "person";
  return html`${state(words, tone)}
  ${reason !== null && html`<span class="hint">${isShown ? outside(reason) : hiddenText}</span>`}`;
}

export const recipientPath = (recipient: string): string => `/handlers/${encodeURIComponent(recipient)}`;

/** A count that went no further than `most`. */
export const countText = (n: number, most: number): string => (n < most ? String(n) : `${most} or more`);
