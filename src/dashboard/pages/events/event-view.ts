import { applyEdits, format } from "jsonc-parser";
import type { StoredEvent } from "../../../inbox/queries.ts";
import { type Html, html } from "../../../platform/html.ts";
import { linesWithoutControls } from "../../../platform/readable-text.ts";
import { state } from "../../parts/state.ts";
import { time } from "../../parts/time.ts";
import { stateTones } from "./list-view.ts";

export interface EventPage {
  event: StoredEvent;
  /** Other events with the same id: the service sent other bytes under it. */
  sameId: readonly number[];
  showsBytes: boolean;
  mayReplay: boolean;
  timeZone: string;
}

/** Pure. */
export function renderEvent(page: EventPage): Html {
  const { event, sameId, mayReplay, timeZone } = page;
  return html`<section class="card">
      <div class="row">
        <h2>${event.type ?? "An event without a type that can be read"}</h2>
        ${state(event.state, stateTones[event.state])}
        ${mayReplay && event.raw !== null && html`<form class="end" method="post" action="/events/${event.seq}/replay"><button class="second">Replay</button></form>`}
      </div>
      <dl class="facts">
        <dt>Id</dt>
        <dd class="id">${event.event_id}</dd>
        <dt>Object</dt>
        <dd>
          ${event.resource_id === null ? "–" : html`${event.resource_type} <span class="id">${event.resource_id}</span>`}
        </dd>
        <dt>Created</dt>
        <dd>
          ${event.event_created_at === null ? "the event does not say" : time(event.event_created_at, timeZone)}
        </dd>
        <dt>Received</dt>
        <dd>${time(event.received_at, timeZone)}</dd>
        <dt>Signed with</dt>
        <dd class="id">${event.secret_id}</dd>
        <dt>Deliveries</dt>
        <dd>${event.deliveries}</dd>
        <dt>Attempts</dt>
        <dd>
          ${event.attempts}${event.next_attempt_at !== null && html`, the next at ${time(event.next_attempt_at, timeZone)}`}
        </dd>
        <dt>Why</dt>
        <dd>${event.reason ?? "–"}</dd>
        ${
          sameId.length > 0 &&
          html`<dt>Same id</dt>
            <dd>
              ${sameId.map((seq) => html`<a href="/events/${seq}">${seq}</a> `)}with other bytes
            </dd>`
        }
      </dl>
    </section>
    ${renderBytes(page)}`;
}

function renderBytes({ event: { raw, rewritten }, showsBytes }: EventPage): Html {
  if (!showsBytes) {
    return html`<p class="hint">
      Your roles do not allow you to see the bytes. It takes the permission payload:read.
    </p>`;
  }
  if (raw === null) return html`<p class="hint">The bytes were removed, as old ones are.</p>`;
  const text = raw.toString("utf8");
  return html`<section>
    <h2>Bytes</h2>
    <p class="lead">
      ${rewritten === true ? "Personal data was removed from them since they arrived." : "As they arrived."}
      ${raw.length} bytes. You reading them was recorded.
    </p>
    <pre tabindex="0" aria-label="The body, laid out">${linesWithoutControls(pretty(text))}</pre>
    <details>
      <summary>Exactly as they arrived</summary>
      <pre tabindex="0" aria-label="The body as it arrived">${linesWithoutControls(text)}</pre>
    </details>
  </section>`;
}

/** Laid out without being read as numbers, which might change them; as it is where it is no JSON. Pure. */
function pretty(text: string): string {
  const edits = format(text, undefined, { tabSize: 2, insertSpaces: true });
  return applyEdits(text, edits);
}
