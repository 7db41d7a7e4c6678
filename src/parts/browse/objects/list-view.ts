import type { Change } from "../../../core/mirror/changes/read-changes.ts";
import type { ListedCharge } from "../../../core/mirror/charges.ts";
import type { ListedObject } from "../../../core/mirror/look-up.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import {
  money,
  objectLink,
  objectPath,
  outside,
  shortId,
  state,
  time,
} from "../../../app/dashboard/elements/values.ts";
import type { PageOf } from "../../../app/dashboard/elements/paging.ts";
import { type TableColumn, table } from "../../../app/dashboard/elements/table.ts";
import { type Recognized, cardInWords, chargeOf, nearestDouble, itemsInWords } from "./recognized.ts";
import { exactTime } from "./source.ts";
import { nouns, statusWords } from "./words.ts";

/** What the search field at the head of every page finds. */
const searchHint = (mayFindPersons: boolean): Html =>
  html`<p class="lead">
    ${
      mayFindPersons
        ? "Search by order number, name, e-mail address or its beginning, the last four digits of a card, any id or its " +
          "first eight characters, or “event 308”. Searches for people are recorded, without the text that was searched for."
        : "Search by order number, any id or its first eight characters, or “event 308”. Searching by name, e-mail " +
          "address or card requires the permission person:read."
    }
  </p>`;

export interface FoundPage {
  found: PageOf<ListedObject>;
  recognized: Recognized;
  /** The searched text; null where it is personal. */
  text: string | null;
  /** The query that the form for older results sends. */
  query: string;
  /** Whether more customers match than were looked at. */
  isCut: boolean;
  timeZone: string;
}

/** A search's results: several, or none. */
export function renderFound(page: FoundPage): Html {
  const { found, recognized, text, query, isCut, timeZone } = page;
  return html`${found.rows.length === 0 && searchHint(recognized.showsPersons)}
  ${
    isCut &&
    html`<p class="notice" role="status">
      More than 500 customers match, and these are only some of them: add another name, or the beginning of the e-mail
      address.
    </p>`
  }
  ${renderObjects(found.rows, {
    caption: text === null ? "Found, newest first" : `Found for “${text}”, newest first`,
    empty: html`<p>Nothing was found.</p>
      <p>
        A name, an address and an id are found by their beginnings, an order number by the whole of it. What happened
        within the last seconds may still be on its way: <a href="/events">see the newest events</a>.
      </p>`,
    recognized,
    leadsWithCustomer: true,
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

export interface ObjectsTable {
  caption: string;
  empty: Html;
  recognized: Recognized;
  /** For a list of several customers' objects. */
  leadsWithCustomer?: boolean;
  timeZone: string;
}

/** A table of objects that leads to their pages. */
export function renderObjects(
  rows: readonly ListedObject[],
  { caption, empty, recognized, leadsWithCustomer = false, timeZone }: ObjectsTable,
): Html {
  const charge = (row: ListedObject) => chargeOf(recognized, row);
  const columns: TableColumn<ListedObject>[] = [
    { name: "What", cell: (row) => html`${whatOf(row, recognized)}${doubleMark(row, recognized)}` },
    { name: "State", cell: (row) => statusBadge(row.resource, row.status) || newestState(charge(row)) },
  ];
  if (leadsWithCustomer && rows.some(({ customerId }) => recognized.names.get(customerId ?? "") !== undefined)) {
    columns.unshift({ name: "Customer", cell: (row) => customerOf(row, recognized) });
  }
  const addWhereKnown = (column: TableColumn<ListedObject>, isKnown: (row: ListedObject) => boolean): void => {
    if (rows.some(isKnown)) columns.push(column);
  };
  const amountOf = (row: ListedObject) => row.amount ?? charge(row)?.amount ?? null;
  addWhereKnown(
    {
      name: "Amount",
      kind: "number",
      cell: (row) => {
        const amount = amountOf(row);
        return amount === null ? "" : money(amount, row.currency ?? charge(row)?.currency ?? null);
      },
    },
    (row) => amountOf(row) !== null,
  );
  const words = (name: string, of: (charge: ListedCharge) => string | null): void => {
    const wordsOf = (row: ListedObject): string | null => {
      const its = charge(row);
      return its === null ? null : of(its);
    };
    addWhereKnown({ name, cell: (row) => outside(wordsOf(row) ?? "", 100) }, (row) => wordsOf(row) !== null);
  };
  words("Product", itemsInWords);
  words("Card", cardInWords);
  columns.push(
    {
      name: "When",
      kind: "moment",
      cell: (row) => {
        const at = charge(row)?.at ?? row.createdAt;
        return at === null ? "not known yet" : exactTime(at, timeZone);
      },
    },
    { name: "Id", kind: "id", cell: ({ id }) => html`<span class="hint">${shortId(id)}</span>` },
  );
  return table(columns, rows, { caption, empty });
}

/** A short number stays beside its noun; a long one breaks. */
const numberOf = (number: string): Html =>
  number.length > 20 ? outside(number, 60) : html`<bdi>${withoutControls(number)}</bdi>`;

/** The object in words, which lead to its page. */
function whatOf({ resource, id, type, orderNumber }: ListedObject, { newest }: Recognized): Html {
  const noun = nouns[resource] ?? resource;
  const words =
    orderNumber !== null
      ? html`${noun} ${numberOf(orderNumber)}`
      : type === null
        ? noun
        : html`${noun}: ${outside(type, 40)}`;
  return html`<a href="${objectPath(resource, id)}">${words}</a
    >${newest.has(id) && html`<br /><span class="hint">with the newest order</span>`}`;
}

function customerOf({ customerId }: ListedObject, { names }: Recognized): Html | string {
  const name = customerId === null ? undefined : names.get(customerId);
  if (customerId === null || name === undefined) return "";
  return html`<a href="${objectPath("customer", customerId)}">${name === "" ? "no name" : outside(name, 60)}</a>`;
}

const newestState = (charge: ListedCharge | null): Html | string =>
  charge === null ? "" : statusBadge("order", charge.status);

/** That another order looks like the same charge, made twice. */
function doubleMark(row: ListedObject, recognized: Recognized): Html | null {
  const charge = row.resource === "order" ? chargeOf(recognized, row) : null;
  const double = charge === null ? null : nearestDouble(recognized, charge);
  return double && html`<br />${state(double.words, "warn")}`;
}

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
