import { tallyhook } from "../../../platform/command-line.ts";
import { alertSeverities } from "../message.ts";
import type { AlertRow, UnresolvedCount } from "../store.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { money, outside, severityState, time } from "../../../app/dashboard/elements/values.ts";
import { type PageOf, pager } from "../../../app/dashboard/elements/paging.ts";
import { type TableColumn, table } from "../../../app/dashboard/elements/table.ts";
import { type Sight, alertState, alertTabs, objectLinks, titleOf } from "./alert-words.ts";

export interface AlertsPage {
  alerts: PageOf<AlertRow>;
  counts: readonly UnresolvedCount[];
  mostCounted: number;
  silences: number;
  rules: readonly string[];
  query: URLSearchParams;
  sight: Sight;
  timeZone: string;
}

/** Values of the filter; empty: unresolved alerts. */
export const stateFilters = ["open", "acknowledged", "silenced", "resolved", "all"] as const;

export function renderAlerts(page: AlertsPage): Html {
  const { alerts, query, sight, timeZone } = page;
  const columns: TableColumn<AlertRow>[] = [
    { name: "Number", kind: "number", cell: ({ id }) => html`<a href="/alerts/${id}">${id}</a>` },
    { name: "Raised", kind: "moment", cell: ({ opened_at: at }) => time(at, timeZone) },
    { name: "Severity", cell: ({ severity }) => severityState(severity) },
    { name: "State", cell: (alert) => alertState(alert, timeZone) },
    ...(sight.texts
      ? [
          {
            name: "What",
            kind: "long" as const,
            cell: (alert: AlertRow) =>
              html`${outside(titleOf(alert), 200)}
                <p class="hint">${alert.rule}</p>`,
          },
        ]
      : [{ name: "Rule", cell: ({ rule }: AlertRow) => rule }]),
    { name: "About", cell: (alert) => objectLinks(alert) },
    ...(sight.texts ? [{ name: "Amount", kind: "number" as const, cell: amountOf }] : []),
  ];
  return html`${alertTabs("/alerts")} ${renderCounts(page)} ${renderFilter(page)}
  ${table(columns, alerts.rows, {
    caption: "Newest first",
    empty: query.size === 0 ? noneYet : noneMatches,
  })}
  ${pager("/alerts", query, alerts.older)}`;
}

const amountOf = ({ amount_minor: minor, currency }: AlertRow): Html | null =>
  minor === null ? null : money(minor, currency);

function renderCounts({ counts, mostCounted, silences }: AlertsPage): Html {
  const sum = counts.reduce((all, { alerts }) => all + alerts, 0);
  const parts = counts.map(({ severity, alerts }) => counted(alerts, severity, severalOf[severity]));
  const untaken = counts.reduce((all, { open }) => all + open, 0);
  const total =
    sum === 0
      ? "Every alert is resolved."
      : sum >= mostCounted
        ? `More than ${mostCounted - 1} alerts are not resolved. Of the newest: ${parts.join(", ")}.`
        : `${counted(sum, "alert is", "alerts are")} not resolved: ${parts.join(", ")}. ` +
          `${counted(untaken, "is", "are")} not acknowledged.`;
  return html`<p class="lead">
    ${total}
    ${silences > 0 && html`<a href="/alerts/silences">${counted(silences, "silence is", "silences are")} in force.</a>`}
  </p>`;
}

function renderFilter({ query, rules }: AlertsPage): Html {
  const options = (name: string, values: readonly string[], all: string): Html =>
    html`<select id="${name}" name="${name}">
      <option value="">${all}</option>
      ${values.map((value) => html`<option value="${value}" ${value === query.get(name) && selected}>${value}</option>`)}
    </select>`;
  return html`<form class="filters" method="get" action="/alerts" role="search">
    <div>
      <label for="state">State</label>
      ${options("state", stateFilters, "not resolved")}
    </div>
    <div>
      <label for="severity">Severity</label>
      ${options("severity", alertSeverities, "all")}
    </div>
    <div>
      <label for="rule">Rule</label>
      ${options("rule", rules, "all")}
    </div>
    <div>
      <label for="object">Object</label>
      <input id="object" name="object" placeholder="ord_…" value="${query.get("object") ?? ""}" />
    </div>
    <button class="second">Show</button>
  </form>`;
}

const severalOf = { critical: "critical", error: "errors", warning: "warnings", info: "info" };

const selected: Html = html`selected`;

const noneYet = html`There is no alert. To see one, have a payment declined on the sandbox:
  <code>${tallyhook("trigger order.failed")}</code>`;
const noneMatches = html`No alert matches. <a href="/alerts">Show what is not resolved</a>`;
