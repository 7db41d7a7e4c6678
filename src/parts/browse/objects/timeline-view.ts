import type { FieldChange } from "../../../core/mirror/blame/fields.ts";
import type { Loss } from "../../../core/mirror/blame/losses.ts";
import type { Heal, KnownState, RefusedState } from "../../../core/mirror/blame/object-history.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { type Tone, outside, state as stateBadge } from "../../../app/dashboard/elements/values.ts";
import { withQuery } from "../../../app/dashboard/elements/paging.ts";
import { lossSentence } from "./blame-view.ts";
import { type ValueStyle, fieldName, fieldValue } from "./field-value.ts";
import { type EventsBySeq, moment, sourceOf } from "./source.ts";
import { groupWords } from "./words.ts";
import { hiddenText } from "../../../app/dashboard/elements/personal.ts";

/** A state, and its changes from the previous one. */
export interface TimelineEntry {
  state: KnownState;
  /** Whether it is the first known one of its group. */
  isFirst: boolean;
  changes: readonly FieldChange[];
  /** Null: it lost no contest. */
  loss: Loss | null;
  /** Whether the mirror shows it. */
  isShown: boolean;
}

export interface TimelineSection {
  entries: readonly TimelineEntry[];
  /** The value of `before` for older states; null where there are none. */
  older: string | null;
  refused: readonly { state: RefusedState; loss: Loss }[];
  heals: readonly Heal[];
  events: EventsBySeq;
  style: ValueStyle;
  noun: string;
  path: string;
  query: URLSearchParams;
}

/** Every known state by its own time, the newest first. */
export function renderTimeline(section: TimelineSection): Html {
  const { entries, older, heals, refused, path, query, style } = section;
  const isFirstPage = !query.has("before");
  return html`<section id="timeline">
    <h2>Timeline</h2>
    ${isFirstPage && heals.map((heal) => renderHeal(heal, style))}
    ${
      isFirstPage &&
      refused.length > 0 &&
      html`<details class="card">
        <summary>${counted(refused.length, "state")} that no field may show</summary>
        <ol class="plain-list timeline">
          ${refused.map(({ state, loss }) => renderRefused(state, loss, section))}
        </ol>
      </details>`
    }
    <ol class="plain-list timeline">
      ${arrivalsOf(entries).map((each) => renderArrival(each, section))}
    </ol>
    ${
      (older !== null || !isFirstPage) &&
      html`<nav class="pager" aria-label="Pages of the timeline">
        ${isFirstPage ? html`<span></span>` : html`<a href="${withQuery(path, query, { before: null })}#timeline">Newest</a>`}
        ${older !== null && html`<a rel="next" href="${withQuery(path, query, { before: older })}#timeline">Older</a>`}
      </nav>`
    }
  </section>`;
}

function renderHeal({ at, by, reason, changedColumns }: Heal, { timeZone, readsTexts }: ValueStyle): Html {
  return html`<p class="notice">
    Healed by ${outside(by, 100)} at ${moment(at.toISOString(), timeZone)}: ${readsTexts ? outside(reason) : hiddenText}
    <span class="hint"
      >${changedColumns.length === 0 ? "Nothing changed." : `Changed: ${changedColumns.slice(0, 20).join(", ")}.`}</span
    >
  </p>`;
}

function renderRefused(state: RefusedState, loss: Loss, { events, style, noun }: TimelineSection): Html {
  return html`<li>
    <p>
      ${moment(state.updatedAt, style.timeZone)}, ${sourceOf(state, events)}:
      ${lossSentence(loss, { noun, group: state.group }, style.timeZone)}
    </p>
  </li>`;
}

/** States of one moment that came together: an event shows several groups of fields. */
function arrivalsOf(entries: readonly TimelineEntry[]): TimelineEntry[][] {
  const arrivals: TimelineEntry[][] = [];
  for (const entry of entries) {
    const last = arrivals.at(-1);
    const [first] = last ?? [];
    const isSame = first?.state.cause === entry.state.cause && first.state.updatedAt === entry.state.updatedAt;
    if (isSame && last !== undefined) last.push(entry);
    else arrivals.push([entry]);
  }
  return arrivals;
}

function renderArrival(entries: readonly TimelineEntry[], section: TimelineSection): Html {
  const { events, style } = section;
  const state = entries[0]?.state;
  if (state === undefined) return html``;
  return html`<li>
    <h3>${moment(state.updatedAt, style.timeZone)}</h3>
    <p class="hint">${sourceOf(state, events)}, ${receivedOf(state, events, style.timeZone)}</p>
    ${worthTelling(entries).map((entry) => renderEntry(entry, section))}
  </li>`;
}

/** Leaves out groups that only got another time together with a group that changed. */
function worthTelling(entries: readonly TimelineEntry[]): readonly TimelineEntry[] {
  const told = entries.filter(
    ({ changes, loss }) => loss !== null || changes.some(({ field }) => field !== "updated_at"),
  );
  return told.length > 0 ? told : entries.slice(0, 1);
}

function renderEntry(entry: TimelineEntry, { style, noun }: TimelineSection): Html {
  const { state, loss } = entry;
  const [text, tone] = fateOf(entry);
  const of = groupWords(state.group);
  return html`<p class="row">
      ${stateBadge(text, tone)} ${of !== null && html`<span class="hint">${of}</span>`}
      ${loss !== null && html`<span>It does not count: ${lossSentence(loss, { noun, group: state.group }, style.timeZone)}</span>`}
    </p>
    ${renderChanges(entry, style)}`;
}

function fateOf({ isShown, loss }: TimelineEntry): [string, Tone] {
  if (isShown) return ["Shown now", "good"];
  return loss === null ? ["Past", "calm"] : ["Lost", "warn"];
}

function receivedOf({ cause, recordedAt, observedAt }: KnownState, events: EventsBySeq, timeZone: string): Html {
  const received = events.get(Number(cause.slice("event:".length)))?.received_at;
  if (received !== undefined) return html`received ${moment(received.toISOString(), timeZone)}`;
  if (observedAt !== null) return html`read ${moment(observedAt, timeZone)}`;
  return html`learned ${moment(recordedAt, timeZone)}`;
}

const mostChanges = 40;

function renderChanges({ changes, isFirst }: TimelineEntry, style: ValueStyle): Html {
  const shown = changes.filter(({ field }) => field !== "updated_at").slice(0, mostChanges);
  if (shown.length === 0) return html`<p class="hint">${withoutChanges(changes, style)}</p>`;
  const list = html`<dl class="facts">
      ${shown.map(
        ({ field, from, to }) =>
          html`<dt>${fieldName(field)}</dt>
            <dd>
              ${!isFirst && html`${fieldValue(field, from, style)} <span aria-hidden="true">→</span><span class="hidden">became</span> `}${fieldValue(field, to, style)}
            </dd>`,
      )}
    </dl>
    ${changes.length - 1 > shown.length && html`<p class="hint">and ${changes.length - 1 - shown.length} more fields</p>`}`;
  if (!isFirst) return list;
  return html`<details>
    <summary>The first that is known of it</summary>
    ${list}
  </details>`;
}

function withoutChanges(changes: readonly FieldChange[], { showsPersons }: ValueStyle): string {
  const seen = changes.length > 0 ? "Only its time changed." : "Nothing changed.";
  return showsPersons ? seen : `${seen} Personal data would not be shown.`;
}
