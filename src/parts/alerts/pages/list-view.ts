import { tallyhook } from "../../../platform/command-line.ts";
import type { AlertRow, UnresolvedCount } from "../store.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { money, outside, severityState, ago } from "../../../app/dashboard/elements/values.ts";
import { type TableColumn, table } from "../../../app/dashboard/elements/table.ts";
import { type Sight, alertState, alertTabs, objectLinks, titleOf } from "./alert-words.ts";

interface AlertsTable {
  isFiltered: boolean;
  sight: Sight;
  timeZone: string;
}

export function renderAlerts(rows: readonly AlertRow[], { isFiltered, sight, timeZone }: AlertsTable): Html {
  const columns: TableColumn<AlertRow>[] = [
    { name: "Number", kind: "number", cell: ({ id }) => html`<a href="/alerts/${id}">${id}</a>` },
    { name: "Raised", kind: "moment", cell: ({ opened_at: at }) => ago(at, timeZone) },
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
  return table(columns, rows, { caption: "Newest first", empty: isFiltered ? noneMatches : noneYet });
}

const amountOf = ({ amount_minor: minor, currency }: AlertRow): Html | null =>
  minor === null ? null : money(minor, currency);

interface Counts {
  counts: readonly UnresolvedCount[];
  mostCounted: number;
  silences: number;
}

export function renderCounts({ counts, mostCounted, silences }: Counts): Html {
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
  return html`${alertTabs("/alerts")}
    <p class="lead">
      ${total}
      ${silences > 0 && html`<a href="/alerts/silences">${counted(silences, "silence is", "silences are")} in force.</a>`}
    </p>`;
}

const severalOf = { critical: "critical", error: "errors", warning: "warnings", info: "info" };

const noneYet = html`There is no alert. To see one, have a payment declined on the sandbox:
  <code>${tallyhook("trigger order.failed")}</code>`;
const noneMatches = html`No alert matches. <a href="/alerts">Show what is not resolved</a>`;
