import type { EventState } from "../../../../core/inbox/claim.ts";
import type { EventRow } from "../../../../core/inbox/queries.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { durationText } from "../../../../platform/readable-text.ts";
import { type Problems, filterForm } from "../../../../app/dashboard/elements/filter-form.ts";
import { shortId, time, type Tone, outside, state, ago } from "../../../../app/dashboard/elements/values.ts";
import { live } from "../../../../app/dashboard/elements/live.ts";
import { type PageOf, pager, withQuery } from "../../../../app/dashboard/elements/paging.ts";
import { type TableColumn, table } from "../../../../app/dashboard/elements/table.ts";
import { eventList, filtersSet } from "../event-list.ts";

export interface EventsPage {
  events: PageOf<EventRow>;
  query: URLSearchParams;
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

export const renderEvents = (page: EventsPage): Html =>
  html`${renderFilters(page.query, page.timeZone)} ${isLive(page.query) ? live(renderFound(page)) : renderFound(page)}`;

/** The newest events, which others join at the top. */
const isLive = (query: URLSearchParams): boolean => !query.has("before") && (query.get("until") ?? "") === "";

function renderFound({ events, query, stop, mayReplay, timeZone }: EventsPage): Html {
  const isFiltered = filtersSet(query).length > 0;
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
  { name: "Received", cell: ({ received_at: at }) => ago(at, timeZone) },
  { name: "Type", cell: ({ type }) => (type === null ? "unreadable" : outside(type, 80)) },
  { name: "State", cell: (event) => state(event.state, stateTones[event.state]) },
  { name: "Object", kind: "id", cell: (event) => objectFilter(event, query) },
  ...(rows.some((event) => latenessOf(event) !== "")
    ? [{ name: "Late by", kind: "number" as const, cell: latenessOf }]
    : []),
  { name: "Why", cell: ({ reason }) => (reason === null ? "" : outside(reason, 200)) },
];

export function renderFilters(query: URLSearchParams, timeZone: string, problems: Problems = {}): Html {
  const { from, until, ...others } = eventList.filters;
  const inZone = (filter: typeof from) => ({ ...filter, label: `${filter.label ?? ""} (${timeZone})` });
  return filterForm("/events", query, { ...others, from: inZone(from), until: inZone(until) }, { problems });
}

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
