import type { EventRow, StoredEvent } from "../../../../core/inbox/queries.ts";
import { type Replayable, decidedOnFound, mostReplayed } from "../../../../core/inbox/replay-search.ts";
import type { ReplayedEvent } from "../../../../core/inbox/retention.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { counted } from "../../../../platform/readable-text.ts";
import type { EventPreview, PreviewResult } from "../../../../core/worker/preview-event.ts";
import { decidedOn } from "../../../../app/dashboard/elements/decided-on.ts";
import { fieldChanges } from "../../../../app/dashboard/elements/field-changes.ts";
import { outside, state, time } from "../../../../app/dashboard/elements/values.ts";
import { table } from "../../../../app/dashboard/elements/table.ts";
import { objectLink, renderAlerts, renderChanges } from "./consequences.ts";
import type { ToldByPreview } from "./event-tools.ts";
import { stateTones } from "./list-view.ts";
import { reasonInWords } from "../../../../core/worker/reason-words.ts";

export interface PreviewPage {
  event: StoredEvent;
  version: string;
  result: PreviewResult<ToldByPreview>;
  showsPersons: boolean;
  timeZone: string;
}

/** The preview of a replay, with its button. */
export function renderPreview(page: PreviewPage): Html {
  const { event, version, result } = page;
  return html`<p class="lead">
      Event <a href="/events/${event.seq}">${event.seq}</a>,
      ${event.type === null ? "of a type that cannot be read" : outside(event.type, 200)}, is now
      ${state(event.state, stateTones[event.state])}. It was applied to see the result, and rolled back: nothing has
      changed.
    </p>
    ${renderResult(page)}
    ${
      result.kind !== "empty" &&
      html`<section class="card">
        <h2>Replay it</h2>
        <p>
          It is put back among the events that wait. A worker applies it within seconds, with the mirror as it is then.
        </p>
        <form method="post" action="/events/${event.seq}/replay" class="row">
          ${decidedOn(version)}
          <button>Replay event ${event.seq}</button>
          <a href="/events/${event.seq}">Leave it as it is</a>
        </form>
      </section>`
    }`;
}

function renderResult(page: PreviewPage): Html {
  const { result } = page;
  switch (result.kind) {
    case "empty":
      return html`<p class="problem">
        The payload of this event was removed, so it cannot be applied again.
        <code>${tallyhook("reconcile --full")}</code>
        reads from the service what the mirror lacks.
      </p>`;
    case "busy":
      return html`<p class="problem">
        Another process is writing this event or its object, so there is no preview. Load the page again in a moment.
      </p>`;
    case "fails":
      return html`<p class="problem">
        It would fail: <bdi>${result.reason}</bdi>. ${reasonInWords(result.reason)} A replay would try it again, up to
        16 times. Fix the cause first.
      </p>`;
    case "applied":
      return renderApplied(result, page);
  }
}

function renderApplied(
  { completed, objects, refetches, seen }: EventPreview<ToldByPreview>,
  { event, showsPersons }: PreviewPage,
): Html {
  return html`<section class="card">
      <h2>It would become ${state(completed.state, stateTones[completed.state])}</h2>
      <dl class="facts">
        <dt>Object</dt>
        <dd>${objectLink(completed.resourceType, completed.resourceId)}</dd>
        <dt>Why</dt>
        <dd>${completed.reason === null ? "–" : outside(completed.reason, 1_000)}</dd>
        <dt>Rows</dt>
        <dd>
          ${objects.length === 0 ? "No row of the mirror would change." : `${counted(objects.length, "row")} of the mirror would change.`}
        </dd>
        <dt>Read from the service</dt>
        <dd>
          ${
            refetches.length === 0
              ? "nothing"
              : refetches.slice(0, 10).map(({ resource, id }) => html`<p>${outside(`${resource} ${id}`, 200)}</p>`)
          }
        </dd>
      </dl>
    </section>
    ${objects.map(
      ({ object, isNew, changes }) =>
        html`<section class="stack">
          <h2>${objectLink(object.resource, object.id)}</h2>
          ${fieldChanges(changes, {
            caption: isNew ? "The row would be made" : "Fields of the row that would change",
            mayRead: showsPersons,
          })}
        </section>`,
    )}
    ${renderChanges(seen.changes, { caption: "Changes that the feed would carry", empty: html`The feed would carry no change.` })}
    ${
      seen.alerts !== null &&
      renderAlerts(seen.alerts, {
        caption: "Alerts that would be sent",
        empty: html`No alert would be sent.`,
        isPreview: true,
      })
    }
    <section class="card">
      <h2>Limits of this preview</h2>
      <ul>
        <li>Changes in between: another event or a read may change the object first.</li>
        ${
          refetches.length > 0 &&
          html`<li>
            What the service answers. An object that is read afterwards may change more, and raise more alerts.
          </li>`
        }
        <li>Effects of the changes on your own handlers, forwarding and other readers of the feed.</li>
        <li>Alerts that time makes due, such as a list of many alerts or an absence.</li>
        ${event.state === "received" && html`<li>A worker is about to apply this event anyway.</li>`}
      </ul>
    </section>`;
}

/** The present state of events, for a person who decided on an earlier one. */
export const renderEventNow = (events: readonly ReplayedEvent[], timeZone: string): Html =>
  html`<ul>
      ${events
        .slice(0, 20)
        .map(
          ({ seq, state: now, attempts }) =>
            html`<li>
              <a href="/events/${seq}">Event ${seq}</a> is ${state(now, stateTones[now])} after
              ${counted(attempts, "attempt")}.
            </li>`,
        )}
    </ul>
    <p class="hint">Times are shown in ${timeZone}.</p>`;

export interface SelectionPage {
  events: readonly EventRow[];
  /** Number of chosen events without bytes. */
  left: number;
  version: string;
  timeZone: string;
}

/** Chosen events before their replay. */
export function renderSelection({ events, left, version, timeZone }: SelectionPage): Html {
  return html`<p class="lead">
      A worker applies them again within seconds. What the mirror knows already changes nothing.
    </p>
    ${
      left > 0 &&
      html`<p class="problem">
        ${counted(left, "chosen event has", "chosen events have")} no stored payload and cannot be applied again.
      </p>`
    }
    ${table(
      [
        {
          name: "Number",
          kind: "number",
          cell: ({ seq }) => html`<a href="/events/${seq}">${seq}</a>`,
        },
        { name: "Received", cell: ({ received_at: at }) => time(at, timeZone) },
        { name: "Type", cell: ({ type }) => (type === null ? "unreadable" : outside(type, 80)) },
        { name: "State", cell: (event) => state(event.state, stateTones[event.state]) },
        {
          name: "Preview",
          cell: ({ seq }) => html`<a href="/events/${seq}/preview">what would come of ${seq}</a>`,
        },
      ],
      events,
      { caption: `${counted(events.length, "event")} to put back`, empty: html`None.` },
    )}
    ${
      events.length > 0 &&
      html`<form method="post" action="/events/replay" class="row">
        ${decidedOn(version)} ${events.map(({ seq }) => html`<input type="hidden" name="seq" value="${seq}" />`)}
        <button>Replay ${counted(events.length, "event")}</button>
        <a href="/events">Leave them as they are</a>
      </form>`
    }`;
}

export interface FoundPage {
  found: Replayable;
  states: readonly { state: EventRow["state"]; n: number }[];
  filter: string;
  /** The form's fields for the filter. */
  fields: readonly { name: string; value: string }[];
  askedAt: Date;
}

/** A filter's results before their replay. */
export function renderFoundConfirm({ found, states, filter, fields, askedAt }: FoundPage): Html {
  const { seqs, isMore } = found;
  const back = html`<a
    href="/events?${new URLSearchParams(fields.map(({ name, value }): [string, string] => [name, value])).toString()}"
    >Back to the list</a
  >`;
  if (seqs.length === 0) return html`<p class="empty">The filter finds no event. ${back}</p>`;
  if (isMore) {
    return html`<p class="problem">
      The filter finds more than ${counted(mostReplayed, "event")}. Narrow it, such as to a day: one replay puts back no
      more than that. ${back}
    </p>`;
  }
  return html`<section class="card">
    <h2>${counted(seqs.length, "event")}</h2>
    <dl class="facts">
      <dt>Filter</dt>
      <dd><bdi>${filter}</bdi></dd>
      <dt>Numbers</dt>
      <dd>${seqs.at(-1) ?? 0} to ${seqs[0] ?? 0}</dd>
      <dt>Now</dt>
      <dd>${states.map(({ state: name, n }) => html`${state(`${name} ${n}`, stateTones[name])} `)}</dd>
    </dl>
    <p>
      Exactly these are put back, and a worker applies them again. If the filter finds others by then, nothing is done.
      This confirmation holds for ten minutes.
    </p>
    <form method="post" action="/events/replay" class="row">
      ${decidedOn(decidedOnFound(seqs))}
      <input type="hidden" name="all" value="yes" />
      <input type="hidden" name="newest" value="${seqs[0] ?? 0}" />
      <input type="hidden" name="asked-at" value="${askedAt.toISOString()}" />
      ${fields.map(({ name, value }) => html`<input type="hidden" name="${name}" value="${value}" />`)}
      <button>Replay ${counted(seqs.length, "event")}</button>
      ${back}
    </form>
  </section>`;
}
