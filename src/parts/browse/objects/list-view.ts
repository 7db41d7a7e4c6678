import type { Change } from "../../../core/mirror/changes/read-changes.ts";
import type { CardOrder, ListedObject } from "../../../core/mirror/look-up.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { money, objectLink, outside, state, time } from "../../../app/dashboard/elements/values.ts";
import type { PageOf } from "../../../app/dashboard/elements/paging.ts";
import { type TableColumn, table } from "../../../app/dashboard/elements/table.ts";
import { nouns, statusWords } from "./words.ts";

/** What the search field at the head of every page finds. */
const searchHint = (mayFindPersons: boolean): Html =>
  html`<p class="lead">
    ${
      mayFindPersons
        ? "Search by order number, any id, a whole e-mail address, or the last four digits of a card. Searches by " +
          "e-mail address and card are recorded, without the text that was searched for."
        : "Search by order number or any id. Searching by e-mail address or card requires the permission person:read."
    }
  </p>`;

export interface FoundPage {
  found: PageOf<ListedObject | CardOrder>;
  /** The searched text; null where it is personal. */
  text: string | null;
  /** The query that the form for older results sends. */
  query: string;
  mayFindPersons: boolean;
  timeZone: string;
}

/** A search's results: several, or none. */
export function renderFound(page: FoundPage): Html {
  const { found, text, query, timeZone, mayFindPersons } = page;
  return html`${searchHint(mayFindPersons)}
  ${renderObjects(found.rows, {
    caption: text === null ? "Found, newest first" : `Found for “${text}”, newest first`,
    empty: html`<p>Nothing was found.</p>
      <p>
        Is it the whole address, number or id? What happened within the last seconds may still be on its way:
        <a href="/events">see the newest events</a>.
      </p>`,
    timeZone,
  })}
  ${
    found.older !== null &&
    html`<form class="pager" method="post" action="/objects/search">
      <input type="hidden" name="q" value="${query}" />
      <input type="hidden" name="after" value="${found.older}" />
      <button class="second">Older</button>
    </form>`
  }`;
}

/** A table of objects that leads to their pages. */
export function renderObjects(
  rows: readonly (ListedObject | CardOrder)[],
  { caption, empty, timeZone }: { caption: string; empty: Html; timeZone: string },
): Html {
  const columns: TableColumn<ListedObject | CardOrder>[] = [
    { name: "What", cell: ({ resource, type }) => whatOf(resource, type) },
    { name: "Id", kind: "id", cell: ({ resource, id }) => objectLink(resource, id) },
  ];
  if (rows.some(({ orderNumber }) => orderNumber !== null)) {
    columns.push({ name: "Number", cell: ({ orderNumber }) => outside(orderNumber ?? "", 60) });
  }
  columns.push({ name: "State", cell: ({ resource, status }) => statusBadge(resource, status) });
  if (rows.some((row) => "cardBrand" in row)) {
    columns.push({
      name: "Card",
      cell: (row) => ("cardBrand" in row ? outside(row.cardBrand ?? "brand not known", 40) : ""),
    });
  }
  if (rows.some(({ amount }) => amount !== null)) {
    columns.push({
      name: "Amount",
      kind: "number",
      cell: ({ amount, currency }) => (amount === null ? "" : money(amount, currency)),
    });
  }
  columns.push({
    name: "Created",
    cell: ({ createdAt }) => (createdAt === null ? "not known yet" : time(createdAt, timeZone)),
  });
  return table(columns, rows, { caption, empty });
}

const whatOf = (resource: string, type: string | null): Html | string =>
  type === null ? (nouns[resource] ?? resource) : html`${nouns[resource] ?? resource}: ${outside(type, 40)}`;

/** A status in words; empty without one. */
export function statusBadge(resource: string, status: string | null): Html | string {
  if (status === null) return "";
  const { word, tone } = statusWords(resource, status);
  return state(word, tone);
}

export function renderRecent(
  changes: readonly Change[],
  { mayFindPersons, timeZone }: { mayFindPersons: boolean; timeZone: string },
): Html {
  return html`${searchHint(mayFindPersons)} ${recentTable(changes, timeZone)}`;
}

const recentTable = (changes: readonly Change[], timeZone: string): Html =>
  table<Change>(
    [
      { name: "Recorded", cell: ({ recordedAt }) => time(recordedAt, timeZone) },
      { name: "What happened", cell: whatHappened },
      { name: "Id", kind: "id", cell: ({ resource, id }) => objectLink(resource, id) },
      { name: "State", cell: ({ resource, toStatus }) => statusBadge(resource, toStatus) },
    ],
    changes,
    {
      caption: "Latest changes",
      empty: html`<p>Nothing has changed yet: no order, customer or subscription is known.</p>
        <p>Bring in what the service has: <code>${tallyhook("import")}</code></p>
        <p>
          Or make something happen at the sandbox:
          <code>${tallyhook("trigger order.paid")}</code>
        </p>`,
    },
  );

/** `order.partially_refunded` → `Order partially refunded`, with the amount of a refund. */
function whatHappened({ kind, amount, currency }: Change): Html {
  const words = kind.replaceAll(/[._]/g, " ");
  return html`${outside(words.charAt(0).toUpperCase() + words.slice(1), 80)}${amount !== null && html`: ${money(amount, currency)}`}`;
}
