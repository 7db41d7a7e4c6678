import type { RaisedAlert } from "../../../../app/answers.ts";
import type { Change } from "../../../../core/mirror/changes/read-changes.ts";
import type { EventWork, StoredEvent } from "../../../../core/inbox/queries.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { counted, durationText, linesWithoutControls } from "../../../../platform/readable-text.ts";
import { copyableId, outside, state, time } from "../../../../app/dashboard/elements/values.ts";
import { objectLink, renderAlerts, renderChanges } from "./consequences.ts";
import type { StateEffect } from "./event-effects.ts";
import { renderEffects } from "./effects-view.ts";
import { laidOut } from "./laid-out.ts";
import { stateTones } from "./list-view.ts";
import { reasonInWords } from "../../../../core/worker/reason-words.ts";

export interface EventPage {
  event: StoredEvent;
  work: EventWork;
  /** Other events with the same id: the service sent other bytes under it. */
  sameId: readonly number[];
  effects: readonly StateEffect[];
  changes: readonly Change[];
  /** Null: this deployment has no alerts. */
  alerts: readonly RaisedAlert[] | null;
  showsBytes: boolean;
  showsPersons: boolean;
  mayReplay: boolean;
  timeZone: string;
}

export function renderEvent(page: EventPage): Html {
  const { event, sameId, mayReplay, timeZone } = page;
  return html`<section class="card">
      <div class="row">
        <h2>${event.type === null ? "An event without a type that can be read" : outside(event.type, 200)}</h2>
        ${state(event.state, stateTones[event.state])}
        ${
          mayReplay &&
          event.raw !== null &&
          html`<a class="button second end" href="/events/${event.seq}/preview">Preview a replay…</a>`
        }
      </div>
      <p class="lead">${meanings[event.state]}</p>
      <dl class="facts">
        <dt>Why</dt>
        <dd>
          ${event.reason === null ? "–" : outside(event.reason, 1_000)} ${hint(reasonInWords(event.reason))}
          ${
            event.attempts > 1 &&
            html`<p class="hint">
              The reason of the last attempt. Earlier reasons are in the log of the worker, at seq ${event.seq}.
            </p>`
          }
        </dd>
        <dt>Attempts</dt>
        <dd>
          ${event.attempts}${event.next_attempt_at !== null && html`, the next at ${time(event.next_attempt_at, timeZone)}`}
        </dd>
        <dt>Object</dt>
        <dd>${objectLink(event.resource_type, event.resource_id)}</dd>
        <dt>Id</dt>
        <dd>${copyableId(event.event_id)}</dd>
        <dt>Signed with</dt>
        <dd class="id">${event.secret_id}</dd>
        <dt>Deliveries</dt>
        <dd>${event.deliveries === 1 ? "1" : `${event.deliveries}: the service sent the same payload again`}</dd>
        ${
          sameId.length > 0 &&
          html`<dt>Same id</dt>
            <dd>${sameId.map((seq) => html`<a href="/events/${seq}">${seq}</a> `)}with a different payload</dd>`
        }
      </dl>
    </section>
    ${renderTimes(page)} ${renderEffects(page.effects, page)}
    ${renderChanges(page.changes, { caption: "Changes in the feed", empty: html`It led to no change in the feed.` })}
    ${page.alerts !== null && renderAlerts(page.alerts, { caption: "Alerts", empty: html`It led to no alert.` })}
    ${renderBytes(page)}`;
}

const hint = (text: string | null): Html | null => (text === null ? null : html`<p class="hint">${text}</p>`);

const meanings = {
  received: "Stored and acknowledged. A worker applies it within moments.",
  applied: "It changed the mirror, or had an object read from the service.",
  stale: "The mirror knew this state, or a later one. Nothing was wrong.",
  ignored: "Authentic, of a type that changes nothing here.",
  failed: "It could not be applied. It is retried automatically.",
  dead: "Given up. Fix the cause, then replay it.",
} as const;

function renderTimes({ event, work, timeZone }: EventPage): Html {
  const steps: { name: string; at: Date | null; none: string }[] = [
    { name: "Created at the service", at: event.event_created_at, none: "the event does not say" },
    { name: "Received", at: event.received_at, none: "" },
    { name: "Object known", at: work.objectKnownAt, none: "known once a worker has applied it" },
    { name: `Now ${event.state}`, at: work.settledAt, none: "not applied yet" },
  ];
  let former: Date | null = null;
  const shown = steps.map(({ name, at, none }) => {
    const gap = at === null || former === null ? null : at.getTime() - former.getTime();
    former = at ?? former;
    return html`<dt>${name}</dt>
      <dd>
        ${at === null ? none : time(at, timeZone)} ${gap !== null && html`<span class="hint">${gapText(gap)}</span>`}
      </dd>`;
  });
  return html`<section class="card">
    <h2>From the service to the mirror</h2>
    <dl class="facts">${shown}</dl>
  </section>`;
}

/** The service's clock need not agree with ours to the second. */
const gapText = (ms: number): string =>
  ms < 0
    ? `${durationText(-ms)} before, by the clocks`
    : ms < 60_000
      ? `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 0)} s later`
      : `${durationText(ms)} later`;

/** More of a body is for the command line. */
const shownBytes = 200_000;

function renderBytes({ event, showsBytes }: EventPage): Html {
  const { raw, rewritten } = event;
  if (!showsBytes) {
    return html`<p class="hint">
      Your roles do not allow you to see the payload. That requires the permission payload:read.
    </p>`;
  }
  if (raw === null) return html`<p class="hint">The payload was removed because of its age.</p>`;
  const isLong = raw.length > shownBytes;
  const text = raw.subarray(0, shownBytes).toString("utf8");
  return html`<section class="stack">
    <h2>Payload</h2>
    <p class="lead">
      ${rewritten === true ? "Personal data was removed after it arrived." : "Exactly as it arrived."}
      ${counted(raw.length, "byte")}. Tallyhook recorded that you read it.
    </p>
    ${
      isLong &&
      html`<p class="hint">
        The first ${shownBytes} bytes are shown.
        <code>${tallyhook(`events show ${event.seq}`)}</code> prints all.
      </p>`
    }
    <pre
      tabindex="0"
      role="region"
      aria-label="The body, laid out"
    ><bdi>${linesWithoutControls(isLong ? text : laidOut(text))}</bdi></pre>
    <details>
      <summary>Exactly as they arrived</summary>
      <pre tabindex="0" role="region" aria-label="The body as it arrived"><bdi>${linesWithoutControls(text)}</bdi></pre>
    </details>
  </section>`;
}
