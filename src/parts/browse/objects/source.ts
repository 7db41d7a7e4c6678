import { eventOf } from "../../../core/mirror/blame/losses.ts";
import type { KnownState } from "../../../core/mirror/blame/object-history.ts";
import { type Html, html } from "../../../platform/html.ts";
import { outside, time, timeText } from "../../../app/dashboard/elements/values.ts";

/** The inbox's data about events, by their numbers. */
export type EventsBySeq = ReadonlyMap<number, { type: string | null; received_at: Date }>;

/** The source of a state, with a link where it has a page. */
export function sourceOf({ cause }: Pick<KnownState, "cause">, events: EventsBySeq): Html {
  const seq = eventOf(cause);
  if (seq !== null) {
    const event = events.get(seq);
    if (event === undefined) return html`event ${seq}, which was removed since`;
    return html`<a href="/events/${seq}">event ${seq}</a>${event.type !== null && html` (${outside(event.type, 60)})`}`;
  }
  const run = /^reconcile:(\d{1,15})$/.exec(cause)?.[1];
  if (run !== undefined) return html`<a href="/reconciliation/runs/${run}">reconciliation run ${run}</a>`;
  if (cause === "fetch") return html`a read of the service`;
  if (cause === "import") return html`the import`;
  if (cause === "heal") return html`a heal`;
  return outside(cause, 60);
}

/** A time of the fixed form, to the second as people read it. */
export const moment = (at: string, timeZone: string): Html => time(new Date(at), timeZone);

/** A time with its seconds, by which charges are told apart. */
export function exactTime(at: Date, timeZone: string): Html {
  const seconds = String(at.getUTCSeconds()).padStart(2, "0");
  const text = timeText(at, timeZone).replace(/\d\d:\d\d/, (minute) => `${minute}:${seconds}`);
  return html`<time datetime="${at.toISOString()}" title="${at.toISOString()}">${text}</time>`;
}
