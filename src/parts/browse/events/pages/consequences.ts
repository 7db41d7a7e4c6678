import type { RaisedAlert } from "../../../../app/answers.ts";
import type { Change } from "../../../../core/mirror/changes/read-changes.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { moneyText } from "../../../../platform/money.ts";
import { copyableId, objectPath, outside, severityState } from "../../../../app/dashboard/elements/values.ts";
import { table } from "../../../../app/dashboard/elements/table.ts";

interface ListOf {
  caption: string;
  empty: Html;
}

/** An object with the link to its page. */
export const objectLink = (resource: string | null, id: string | null): Html | string =>
  resource === null || id === null
    ? "–"
    : html`<a href="${objectPath(resource, id)}">${resource}</a> ${copyableId(id)}`;

/** A table under its heading, or the heading with a word for an empty table. */
const headed = ({ caption, empty }: ListOf, isEmpty: boolean, listed: () => Html): Html =>
  isEmpty
    ? html`<section>
        <h2>${caption}</h2>
        <p class="hint">${empty}</p>
      </section>`
    : listed();

export const renderChanges = (changes: readonly Change[], list: ListOf): Html =>
  headed(list, changes.length === 0, () => changesTable(changes, list));

const changesTable = (changes: readonly Change[], { caption, empty }: ListOf): Html =>
  table(
    [
      { name: "What happened", cell: ({ kind }) => kind },
      { name: "Object", cell: ({ resource, id }) => objectLink(resource, id) },
      {
        name: "Status",
        cell: ({ fromStatus, toStatus }) =>
          toStatus === null
            ? "–"
            : fromStatus === null || fromStatus === toStatus
              ? outside(toStatus, 40)
              : html`${outside(fromStatus, 40)} → ${outside(toStatus, 40)}`,
      },
      {
        name: "Amount",
        kind: "number",
        cell: ({ amount, currency }) => (amount === null ? "" : moneyText(amount, currency)),
      },
      {
        name: "Came",
        cell: ({ isSuperseded, cause }) =>
          isSuperseded ? "late: a later state stood" : cause === "import" ? "as history" : "as news",
      },
    ],
    changes,
    { caption, empty },
  );

/** Alerts that were sent, or would be: the latter have no pages. */
export const renderAlerts = (alerts: readonly RaisedAlert[], list: ListOf & { isPreview?: boolean }): Html =>
  headed(list, alerts.length === 0, () => alertsTable(alerts, list));

const alertsTable = (
  alerts: readonly RaisedAlert[],
  { caption, empty, isPreview = false }: ListOf & { isPreview?: boolean },
): Html =>
  table(
    [
      {
        name: "Alert",
        cell: ({ id, title, rule }) => {
          const text = outside(title ?? rule, 200);
          return isPreview ? text : html`<a href="/alerts/${id}">${text}</a>`;
        },
      },
      { name: "Rule", cell: ({ rule }) => rule },
      {
        name: "Severity",
        cell: ({ severity }) => severityState(severity),
      },
      { name: isPreview ? "Would be" : "Was", cell: ({ change }) => change },
      {
        name: isPreview ? "Would go to" : "Goes to",
        cell: ({ channels }) => (channels.length === 0 ? "no channel yet" : channels.join(", ")),
      },
    ],
    alerts,
    { caption, empty },
  );
