import { type EventState, eventStates } from "../../../../core/inbox/claim.ts";
import type { EventRow } from "../../../../core/inbox/queries.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { durationText } from "../../../../platform/readable-text.ts";
import { type Tone, outside, shortId, state, time } from "../../../../app/dashboard/elements/values.ts";
import { live } from "../../../../app/dashboard/elements/live.ts";
import { type PageOf, pager, withQuery } from "../../../../app/dashboard/elements/paging.ts";
import { type TableColumn, table } from "../../../../app/dashboard/elements/table.ts";
import { filterNames } from "./event-filter.ts";

export interface EventsPage {
  events: PageOf<EventRow>;
  query: URLSearchParams;
  problems: readonly string[];
  /** The event at which the search stopped, having read as many as a page may; null: at the end. */
  stop: EventRow | null;
  mayReplay: boolean;
  timeZone: string;
}

export const stateTones: Readonly<Record<EventState, Tone>> = {
  received: "calm",
  applied: "good",
  stale: "calm",
  ignored: "calm",
  failed: "warn",
  dead: "bad",
};

export function renderEvents(page: EventsPage): Html {
  const { query, problems } = page;
  return html`${renderFilters(page)}
  ${
    problems.length > 0
      ? html`<div class="problem" role="alert">
          ${problems.map((problem) => html`<p><bdi>${problem}</bdi></p>`)}
          <p>Nothing is listed until the filter can be read. <a href="/events">Show all</a></p>
        </div>`
      : isLive(query)
        ? live(renderFound(page))
        : renderFound(page)
  }`;
}

/** The newest events, which others join at the top. */
const isLive = (query: URLSearchParams): boolean => !query.has("before") && (query.get("until") ?? "") === "";

function renderFound({ events, query, stop, mayReplay, timeZone }: EventsPage): Html {
  const isFiltered = filterNames.some((name) => (query.get(name) ?? "") !== "");
  const isAllLookedThrough = stop === null;
  const found = table([...(mayReplay ? [choice] : []), ...columns(events.rows, query, timeZone)], events.rows, {
    caption: isFiltered ? "Events that match, the newest first" : "Newest first",
    empty: !isFiltered && !query.has("before") ? noneYet : isAllLookedThrough ? noneMatches : noneSoFar,
  });
  return html`${
    mayReplay && events.rows.length > 0
      ? html`<form method="get" action="/events/replay/confirm" class="stack">
          ${found}
          <div class="row">
            <button class="second">Replay the chosen events…</button>
            ${
              isFiltered &&
              html`<a href="${withQuery("/events/replay/confirm", query, { all: "yes", before: null })}"
                >Replay all that the filter finds…</a
              >`
            }
          </div>
        </form>`
      : found
  }
  ${
    stop !== null &&
    html`<p class="hint">
      Searched back to event ${stop.seq}, of ${time(stop.received_at, timeZone)}; there may be older ones that match.
      <a href="${withQuery("/events", query, { before: String(stop.seq) })}">Search on</a>
    </p>`
  }
  ${(query.get("object") ?? "") !== "" && objectHint} ${pager("/events", query, events.older)}`;
}

const choice: TableColumn<EventRow> = {
  name: "Choose",
  cell: ({ seq }) => html`<input type="checkbox" name="seq" value="${seq}" aria-label="Choose event ${seq}" />`,
};

const columns = (rows: readonly EventRow[], query: URLSearchParams, timeZone: string): TableColumn<EventRow>[] => [
  { name: "Number", kind: "number", cell: ({ seq }) => html`<a href="/events/${seq}">${seq}</a>` },
  { name: "Received", cell: ({ received_at: at }) => time(at, timeZone) },
  { name: "Type", cell: ({ type }) => (type === null ? "unreadable" : outside(type, 80)) },
  { name: "State", cell: (event) => state(event.state, stateTones[event.state]) },
  { name: "Object", kind: "id", cell: (event) => objectFilter(event, query) },
  ...(rows.some((event) => latenessOf(event) !== "")
    ? [{ name: "Late by", kind: "number" as const, cell: latenessOf }]
    : []),
  { name: "Why", cell: ({ reason }) => (reason === null ? "" : outside(reason, 200)) },
];

function renderFilters({ query, timeZone }: EventsPage): Html {
  const value = (name: string) => query.get(name) ?? "";
  return html`<form class="filters" method="get" action="/events" role="search">
    <div>
      <label for="state">State</label>
      <select id="state" name="state">
        <option value="">all</option>
        ${eventStates.map((name) => html`<option value="${name}" ${name === value("state") && selected}>${name}</option>`)}
      </select>
    </div>
    <div>
      <label for="type">Type</label>
      <input id="type" name="type" placeholder="order.paid" value="${value("type")}" />
    </div>
    <div>
      <label for="object">Object</label>
      <input id="object" name="object" placeholder="ord_…" value="${value("object")}" />
    </div>
    <div>
      <label for="id">Event id</label>
      <input id="id" name="id" placeholder="evt_…" value="${value("id")}" />
    </div>
    <div>
      <label for="from">Received from (${timeZone})</label>
      <input id="from" name="from" type="datetime-local" value="${value("from")}" />
    </div>
    <div>
      <label for="until">Until (${timeZone})</label>
      <input id="until" name="until" type="datetime-local" value="${value("until")}" />
    </div>
    <button class="second">Show</button>
  </form>`;
}

const selected: Html = html`selected`;

const noneYet = html`No events yet. Point the service's webhooks here, or try it on the sandbox:
  <code>${tallyhook("trigger order.paid")}</code>`;
const noneMatches = html`No event matches. <a href="/events">Show all</a>`;
const objectHint = html`<p class="hint">
  Which object an event is about is known once it has been applied. Others may be among those that
  <a href="/events?state=failed">failed</a> or are <a href="/events?state=dead">dead</a>.
</p>`;
const noneSoFar = html`None so far.`;

const objectFilter = ({ resource_id: id }: EventRow, query: URLSearchParams): Html | string =>
  id === null ? "–" : html`<a href="${withQuery("/events", query, { object: id, before: null })}">${shortId(id)}</a>`;

/** How long after its own time an event was received. */
function latenessOf({ event_created_at: created, received_at: received }: EventRow): string {
  if (created === null) return "";
  const ms = received.getTime() - created.getTime();
  return ms < 60_000 ? "" : durationText(ms);
}
