import type { failedEventsOf } from "../../../core/inbox/queries.ts";
import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { time } from "../../../app/dashboard/elements/values.ts";

export type FailedEvent = Awaited<ReturnType<typeof failedEventsOf>>[number];

/** The most that are listed one by one; one more is read to know of others. */
export const mostFailed = 3;

/** The failed events of an object, whose content it lacks: one line an event, then a link to the others. */
export function failedLines(events: readonly FailedEvent[], id: string, timeZone: string): Html[] {
  const lines = events
    .slice(0, mostFailed)
    .map(
      ({ seq, type, state, receivedAt }) =>
        html`<a href="/events/${seq}">Event ${seq}</a>, ${withoutControls(type ?? "without a type")}, received
          ${time(receivedAt, timeZone)}:
          ${state === "dead" ? "it could not be applied, and is no longer retried" : "it could not be applied yet, and is retried"}`,
    );
  const others = html`<a href="/events?object=${encodeURIComponent(id)}">More of its events were not applied</a>`;
  return events.length > mostFailed ? [...lines, others] : lines;
}
