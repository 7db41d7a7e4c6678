import { type AuditRow, changedValues } from "../../../people/audit.ts";
import { mirrorResources } from "../../../mirror/resources.ts";
import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { objectPath } from "../../parts/object-link.ts";
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
      {
        name: "On",
        cell: ({ subject }) => (subject === null ? "–" : subjectLink(subject, visitor)),
      },
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
const pages: Readonly<Record<string, (id: string) => string>> = {
  ...Object.fromEntries(
    mirrorResources.map(({ name }) => [name, (id: string) => objectPath(name, id)]),
  ),
  event: (id) => `/events/${encodeURIComponent(id)}`,
  finding: (id) => `/reconciliation/findings/${encodeURIComponent(id)}`,
  dunning: (id) => `/dunning/${encodeURIComponent(id)}`,
  chargeback: (id) => `/chargebacks/${encodeURIComponent(id)}`,
  alert: (id) => `/alerts/${encodeURIComponent(id)}`,
  handler: (id) => `/handlers/${encodeURIComponent(id)}`,
  silence: () => "/alerts/silences",
  "run-order": () => "/reconciliation/runs",
  endpoint: () => "/endpoint",
  secret: () => "/deliveries",
  account: () => "/admin/users",
};

/** Pages that not everybody who reads the audit may read. */
const reportPages: typeof pages = {
  month: (id) => `/reports/close/${encodeURIComponent(id)}`,
  report: (id) => `/reports/${encodeURIComponent(id)}`,
};

/** A link where the kind has a page that the visitor may see. Pure. */
function subjectLink(
  { kind, id }: NonNullable<AuditRow["subject"]>,
  { permissions }: Visitor,
): Html {
  const known = permissions.has("report:read") ? { ...pages, ...reportPages } : pages;
  const address = Object.hasOwn(known, kind) ? known[kind]?.(id) : undefined;
  const shown = html`<bdi class="id">${withoutControls(id)}</bdi>`;
  return html`${kind} ${address === undefined ? shown : html`<a href="${address}">${shown}</a>`}`;
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
