import { type AuditRow, changedValues } from "../../../people/audit.ts";
import { auditList } from "../../../people/audit-list.ts";
import { mirrorResources } from "../../../../core/mirror/resources.ts";
import { type Html, html } from "../../../../platform/html.ts";
import type { Permission } from "../../../people/permissions.ts";
import { withoutControls } from "../../../../platform/readable-text.ts";
import { ownPath, type PageDeps, type PageRequest, type Visitor } from "../../route.ts";
import { objectPath, time } from "../../elements/values.ts";
import { withQuery } from "../../elements/paging.ts";
import { table } from "../../elements/table.ts";

const { path } = auditList;

export function renderAudit(
  acts: readonly AuditRow[],
  { timeZone }: Pick<PageDeps, "timeZone">,
  { query, visitor }: PageRequest,
): Html {
  const only = (name: string, value: string): Html =>
    html`<a href="${withQuery(path, query, { [name]: value, before: null })}">${withoutControls(value)}</a>`;
  return table<AuditRow>(
    [
      { name: "When", cell: ({ at }) => time(at, timeZone) },
      {
        name: "Who",
        cell: ({ actor, via, address }) =>
          html`<bdi>${only("by", actor)}</bdi><br />
            <span class="hint moment">${via}${address !== null && ` from ${address}`}</span>`,
      },
      { name: "What", cell: ({ action }) => only("action", action) },
      {
        name: "On",
        cell: ({ subject }) => (subject === null ? "–" : subjectLink(subject, visitor)),
      },
      { name: "Change", kind: "long", cell: renderChange },
    ],
    acts,
    { caption: "Newest first", empty: query.size === 0 ? noneYet : noneMatches },
  );
}

const noneYet = html`No act is recorded yet. Acts are listed from the first sign-in on.`;
const noneMatches = html`No act matches. <a href="${path}">Show all</a>`;

/** The page of an act's subject, and the permission to read it. */
interface SubjectPage {
  access: Permission;
  /** Null where the id is unknown. */
  address(id: string): string | null;
}

const shownTo = (access: Permission, address: SubjectPage["address"]): SubjectPage => ({
  access,
  address,
});

const pages: Readonly<Record<string, SubjectPage>> = {
  ...Object.fromEntries(
    mirrorResources.map(({ name }) => [name, shownTo("status:read", (id) => objectPath(name, id))]),
  ),
  event: shownTo("status:read", (id) => `/events/${encodeURIComponent(id)}`),
  finding: shownTo("status:read", (id) => `/reconciliation/findings/${encodeURIComponent(id)}`),
  dunning: shownTo("status:read", (id) => `/dunning/${encodeURIComponent(id)}`),
  chargeback: shownTo("status:read", (id) => `/chargebacks/${encodeURIComponent(id)}`),
  alert: shownTo("status:read", (id) => `/alerts/${encodeURIComponent(id)}`),
  handler: shownTo("status:read", (id) => `/handlers/${encodeURIComponent(id)}`),
  silence: shownTo("status:read", () => "/alerts/silences"),
  "run-order": shownTo("status:read", () => "/reconciliation/runs"),
  endpoint: shownTo("status:read", () => "/endpoint"),
  secret: shownTo("secret:read", () => "/deliveries"),
  account: shownTo("account:read", (id) => `/admin/users/${encodeURIComponent(id)}`),
  page: shownTo("status:read", (id) => (ownPath(id) === id ? id : null)),
  month: shownTo("report:read", (id) => `/reports/close/${encodeURIComponent(id)}`),
  report: shownTo("report:read", (id) => `/reports/${encodeURIComponent(id)}`),
};

/** A link where the kind has a page that the visitor may see; else what seeing it takes. */
function subjectLink({ kind, id }: NonNullable<AuditRow["subject"]>, { permissions }: Visitor): Html {
  const page = Object.hasOwn(pages, kind) ? pages[kind] : undefined;
  const address = page?.address(id) ?? null;
  const shown = html`<bdi class="id">${withoutControls(id)}</bdi>`;
  if (page === undefined || address === null) return html`${kind} ${shown}`;
  return permissions.has(page.access)
    ? html`${kind} <a href="${address}">${shown}</a>`
    : html`${kind} ${shown} <span class="hint">its page requires ${page.access}</span>`;
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
