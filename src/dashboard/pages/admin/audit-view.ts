import { type AuditRow, changedValues } from "../../../people/audit.ts";
import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { type PageOf, pager, withQuery } from "../../parts/paging.ts";
import { table } from "../../parts/table.ts";
import { time } from "../../parts/time.ts";
import type { Visitor } from "../../route.ts";
import { tabs } from "./sections.ts";

interface AuditPage {
  acts: PageOf<AuditRow>;
  query: URLSearchParams;
  visitor: Visitor;
  timeZone: string;
}

const path = "/admin/audit";

/** Pure. */
export function renderAudit({ acts, query, visitor, timeZone }: AuditPage): Html {
  const only = (name: string, value: string): Html =>
    html`<a href="${withQuery(path, query, { [name]: value, before: null })}"
      >${withoutControls(value)}</a
    >`;
  return html`${tabs(visitor, path)} ${renderFilters(query)}
  ${table<AuditRow>(
    [
      { name: "When", cell: ({ at }) => time(at, timeZone) },
      { name: "Who", cell: ({ actor }) => html`<bdi class="id">${only("by", actor)}</bdi>` },
      { name: "What", cell: ({ action }) => only("action", action) },
      { name: "On", cell: ({ subject }) => (subject === null ? "–" : subjectLink(subject)) },
      { name: "Change", cell: renderChange },
      {
        name: "From",
        cell: ({ via, address }) =>
          address === null ? via : html`${via}<br /><span class="hint">${address}</span>`,
      },
    ],
    acts.rows,
    { caption: "Newest first", empty: query.size === 0 ? noneYet : noneMatches },
  )}
  ${pager(path, query, acts.older)}`;
}

const noneYet = html`Nobody has done anything yet. Acts stand here from the first sign-in on.`;
const noneMatches = html`Nobody did any of this. <a href="${path}">Show all</a>`;

const field = (query: URLSearchParams, name: string, label: string, type = "text"): Html =>
  html`<div>
    <label for="${name}">${label}</label>
    <input id="${name}" name="${name}" type="${type}" value="${query.get(name) ?? ""}" />
  </div>`;

const renderFilters = (query: URLSearchParams): Html =>
  html`<form class="filters" method="get" action="${path}" role="search">
    ${field(query, "by", "Who")} ${field(query, "action", "What")} ${field(query, "kind", "On a")}
    ${field(query, "id", "Its id")} ${field(query, "from", "From day (UTC)", "date")}
    ${field(query, "to", "To day (UTC)", "date")}
    <button class="second">Show</button>
  </form>`;

/** Where the dashboard shows what an act was done to. */
const pages: Readonly<Record<string, string>> = {
  event: "/events/",
  finding: "/reconciliation/findings/",
  alert: "/alerts/",
  order: "/objects/order/",
  transaction: "/objects/transaction/",
  subscription: "/objects/subscription/",
  customer: "/objects/customer/",
};

/** A link where the kind has a page. Pure. */
function subjectLink({ kind, id }: NonNullable<AuditRow["subject"]>): Html {
  const place = Object.hasOwn(pages, kind) ? pages[kind] : undefined;
  const shown = html`<bdi class="id">${withoutControls(id)}</bdi>`;
  return html`${kind}
  ${place === undefined ? shown : html`<a href="${place}${encodeURIComponent(id)}">${shown}</a>`}`;
}

function renderChange(act: AuditRow): Html | string {
  const values = changedValues(act);
  if (values.length === 0) return "";
  return html`<dl class="changes">
    ${values.map(
      ({ name, before, after }) =>
        html`<div>
          <dt>${withoutControls(name)}</dt>
          <dd>
            ${before !== null && html`<del>${withoutControls(before)}</del> → `}<bdi
              >${withoutControls(after ?? "none")}</bdi
            >
          </dd>
        </div>`,
    )}
  </dl>`;
}
