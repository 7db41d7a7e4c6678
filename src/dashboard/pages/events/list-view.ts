import { type EventState, eventStates } from "../../../inbox/claim.ts";
import type { EventRow } from "../../../inbox/queries.ts";
import { type Html, html } from "../../../platform/html.ts";
import { durationText } from "../../../platform/readable-text.ts";
import { shortId } from "../../parts/id.ts";
import { type PageOf, pager, withQuery } from "../../parts/paging.ts";
import { type Tone, state } from "../../parts/state.ts";
import { table } from "../../parts/table.ts";
import { time } from "../../parts/time.ts";

export interface EventsPage {
  events: PageOf<EventRow>;
  query: URLSearchParams;
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

/** Pure. */
export function renderEvents({ events, query, timeZone }: EventsPage): Html {
  return html`<form class="filters" method="get" action="/events" role="search">
      <div>
        <label for="state">State</label>
        <select id="state" name="state">
          <option value="">all</option>
          ${eventStates.map((name) => html`<option value="${name}" ${name === query.get("state") && selected}>${name}</option>`)}
        </select>
      </div>
      <div>
        <label for="type">Type</label>
        <input id="type" name="type" placeholder="order.paid" value="${query.get("type") ?? ""}" />
      </div>
      <div>
        <label for="object">Object</label>
        <input id="object" name="object" placeholder="ord_…" value="${query.get("object") ?? ""}" />
      </div>
      <button class="second">Show</button>
    </form>
    ${table(
      [
        {
          name: "Number",
          kind: "number",
          cell: ({ seq }) => html`<a href="/events/${seq}">${seq}</a>`,
        },
        { name: "Received", cell: ({ received_at: at }) => time(at, timeZone) },
        { name: "Type", cell: ({ type }) => type ?? "unreadable" },
        { name: "State", cell: (event) => state(event.state, stateTones[event.state]) },
        { name: "Object", kind: "id", cell: (event) => objectLink(event, query) },
        { name: "Late by", kind: "number", cell: latenessOf },
        { name: "Why", cell: ({ reason }) => reason ?? "" },
      ],
      events.rows,
      { caption: "Newest first", empty: query.size === 0 ? noneYet : noneMatches },
    )}
    ${pager("/events", query, events.older)}`;
}

const selected: Html = html`selected`;

const noneYet = html`No events yet. Point the service's webhooks here, or try it on the sandbox:
  <code>npx tallyhook trigger order.paid</code>`;
const noneMatches = html`No event matches. <a href="/events">Show all</a>`;

const objectLink = ({ resource_id: id }: EventRow, query: URLSearchParams): Html | string =>
  id === null
    ? "–"
    : html`<a href="${withQuery("/events", query, { object: id, before: null })}"
        >${shortId(id)}</a
      >`;

/** How long after its own time an event was received. */
function latenessOf({ event_created_at: created, received_at: received }: EventRow): string {
  if (created === null) return "–";
  const ms = received.getTime() - created.getTime();
  return ms < 60_000 ? "" : durationText(ms);
}
