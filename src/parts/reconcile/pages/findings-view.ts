import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted, durationText, withoutControls } from "../../../platform/readable-text.ts";
import type { Case } from "../../../app/people/cases.ts";
import type { FindingRow } from "../findings/findings.ts";
import type { OpenFindings } from "../findings/search-findings.ts";
import { money, shortId, severityState, state } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { amountsOf } from "./trust.ts";
import { findingTitle, stateTones } from "./words.ts";

interface FindingsTable {
  cases: ReadonlyMap<string, Case>;
  query: URLSearchParams;
  /** Service time. */
  now: Date;
}

export function renderFindings(findings: readonly FindingRow[], { cases, query, now }: FindingsTable): Html {
  return table<FindingRow>(
    [
      {
        name: "Finding",
        kind: "number",
        cell: ({ id }) => html`<a href="/reconciliation/findings/${id}">${id}</a>`,
      },
      { name: "Severity", cell: severityOf },
      { name: "What", cell: (finding) => findingTitle(finding) },
      { name: "Object", cell: objectOf },
      { name: "Fields", cell: fieldsOf },
      { name: "At risk", kind: "number", cell: atRiskOf },
      {
        name: "Age",
        kind: "number",
        cell: (finding) => ageOf(finding, now),
      },
      { name: "With", cell: ({ id }) => cases.get(id)?.assignee?.email ?? "nobody" },
      {
        name: "State",
        cell: (finding) => state(finding.state, stateTones[finding.state]),
      },
    ],
    findings,
    {
      caption: ["any", "healed"].includes(query.get("state") ?? "") ? "Newest first" : "The most severe first",
      empty: query.size === 0 ? noneOpen : noneMatches,
    },
  );
}

const noneOpen = html`No open finding. Runs list their findings here: <code>${tallyhook("reconcile")}</code>`;
const noneMatches = html`No finding matches. <a href="/reconciliation/findings">Show the open ones</a>`;

export function renderSums(open: readonly OpenFindings[]): Html {
  const left = open.filter(({ isAcknowledged }) => !isAcknowledged);
  const n = left.reduce((all, row) => all + row.n, 0);
  const drift = left.filter((row) => row.isDrift).reduce((all, row) => all + row.n, 0);
  const accepted = open.reduce((all, row) => all + row.n, 0) - n;
  const amounts = amountsOf(left);
  return html`<p class="lead">
    ${n === 0 ? "Nothing is open" : counted(n, "open finding")}${
      n > 0 &&
      `: ${counted(drift, "object differs", "objects differ")} from the ` +
        `service${n > drift ? `, ${n - drift} of other kinds` : ""}`
    }${amounts.length > 0 && `; at risk: ${amounts.join(", ")}`}${accepted > 0 && `; ${accepted} acknowledged`}.
  </p>`;
}

export const severityOf = ({ severity, mode }: FindingRow): Html =>
  html`${severityState(severity)}${mode === "observe" && html` <span class="hint">observed only</span>`}`;

const objectOf = ({ resource, object_id: id }: FindingRow): Html | string =>
  id === null ? "–" : html`${resource} <bdi>${shortId(withoutControls(id))}</bdi>`;

const shownFields = 3;

function fieldsOf({ class: kind, differences }: FindingRow): string {
  if (kind === "identity") return "";
  const names = differences.map(({ field }) => withoutControls(field).slice(0, 60));
  const more = names.length - shownFields;
  return names.slice(0, shownFields).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

export const atRiskOf = ({ amount_at_risk_minor: minor, currency }: FindingRow): Html | string =>
  minor === null ? "–" : money(minor, currency);

/** How long it has lasted. */
export const ageOf = ({ first_seen: first, healed_at: healed }: FindingRow, now: Date): string =>
  durationText((healed ?? now).getTime() - first.getTime());
