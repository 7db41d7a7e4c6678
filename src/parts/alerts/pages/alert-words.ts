import type { AlertRow, AlertState } from "../store.ts";
import type { Permission } from "../../../app/people/permissions.ts";
import { type Html, type HtmlPart, html } from "../../../platform/html.ts";
import { type Tone, shortId, state, time } from "../../../app/dashboard/elements/values.ts";
import { tabs } from "../../../app/dashboard/elements/tabs.ts";
import { mayReadTexts } from "../../../app/dashboard/elements/personal.ts";

/** A visitor's view of alerts. Their titles name no person; messages and notes may. */
export interface Sight {
  /** Titles, advice, amounts and keys: for visitors who see people, or answer alerts. */
  texts: boolean;
  /** Sent messages, notes, and reasons of silences. */
  people: boolean;
}

export const sightOf = (permissions: ReadonlySet<Permission>): Sight => ({
  texts: permissions.has("person:read") || permissions.has("alert:write"),
  people: mayReadTexts(permissions),
});

const stateTones: Readonly<Record<AlertState, Tone>> = {
  open: "warn",
  acknowledged: "calm",
  resolved: "good",
};

/** An alert's state, and until when its messages wait. */
export const alertState = (
  { state: is, silenced_until: until }: Pick<AlertRow, "state" | "silenced_until">,
  timeZone: string,
): Html =>
  html`${state(is, stateTones[is])}
  ${until !== null && html`${state("silenced", "calm")} <span class="hint">until ${time(until, timeZone)}</span>`}`;

/** The alert in one line. */
export const titleOf = ({ facts, rule }: Pick<AlertRow, "facts" | "rule">): string =>
  typeof facts["title"] === "string" ? facts["title"] : rule;

/** The objects that an alert is about, each with its page. */
export function objectLinks(alert: AlertRow, { whole = false } = {}): Html | null {
  const ids = [
    ["order", alert.order_id],
    ["subscription", alert.subscription_id],
    ["transaction", alert.transaction_id],
    ["customer", alert.customer_id],
  ] as const;
  const known = ids.flatMap(([resource, id]) => (id === null ? [] : [{ resource, id }]));
  const shown = whole ? known : known.slice(0, 1);
  if (shown.length === 0) return null;
  return html`<ul class="plain-list">
    ${shown.map(
      ({ resource, id }) =>
        html`<li>
          ${resource}
          <a href="/objects/${resource}/${encodeURIComponent(id)}"
            >${whole ? html`<span class="id">${id}</span>` : shortId(id)}</a
          >
        </li>`,
    )}
  </ul>`;
}

/** A line of a list of facts; none without a value. */
export const fact = (name: string, value: HtmlPart): Html | null =>
  value === null || value === false
    ? null
    : html`<dt>${name}</dt>
        <dd>${value}</dd>`;

export const alertTabs = (current: "/alerts" | "/alerts/silences"): Html =>
  tabs(
    "Alerts",
    [
      { path: "/alerts", name: "Alerts" },
      { path: "/alerts/silences", name: "Silences" },
    ],
    current,
  );
