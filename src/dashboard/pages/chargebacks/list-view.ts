import type { Chargeback } from "../../../mirror/chargebacks.ts";
import type { CustomerName } from "../../../mirror/customer-names.ts";
import { type Case, untouched } from "../../../people/cases.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import { caseMarks, isResting } from "../../parts/case.ts";
import { shortId } from "../../parts/id.ts";
import { money } from "../../parts/money.ts";
import { ageHint } from "../../parts/slow-reads.ts";
import { outside } from "../../parts/outside.ts";
import { state } from "../../parts/state.ts";
import { sums } from "../../parts/sums.ts";
import { table } from "../../parts/table.ts";
import { time } from "../../parts/time.ts";

/** How near the chargebacks of a month are to a threshold of a card network. */
export interface Ratio {
  brand: string;
  programme: string;
  disputes: number;
  limit: number;
  /** Percent of settled sales; null where there are none. */
  ratio: number | null;
  isOver: boolean;
}

export interface ChargebackFilter {
  who: "mine" | "unassigned" | null;
  snoozed: "hide" | "only" | null;
}

export interface ListPage {
  open: readonly Chargeback[];
  ended: readonly Chargeback[];
  /** How old both are; who looks after them is as it is now. */
  ageMs: number;
  cases: ReadonlyMap<string, Case>;
  /** Empty for whoever may not see who customers are. */
  names: ReadonlyMap<string, CustomerName>;
  filter: ChargebackFilter;
  /** Null without reports; unknown where the database was too slow. */
  ratios: readonly Ratio[] | "unknown" | null;
  own: number;
  now: Date;
  wallNow: Date;
  timeZone: string;
}

const dayMs = 86_400_000;
const ages = [
  ["Up to a week", 7],
  ["Up to two weeks", 14],
  ["Up to 30 days", 30],
  ["Older", Infinity],
] as const;

/** Pure. */
export function shownChargebacks(
  chargebacks: readonly Chargeback[],
  cases: ReadonlyMap<string, Case>,
  { who, snoozed }: ChargebackFilter,
  { own, wallNow }: { own: number; wallNow: Date },
): Chargeback[] {
  return chargebacks.filter(({ key }) => {
    const current = cases.get(key) ?? untouched;
    return (
      (who !== "mine" || current.assignee?.id === own) &&
      (who !== "unassigned" || current.assignee === null) &&
      (snoozed === null || isResting(current, wallNow) === (snoozed === "only"))
    );
  });
}

/** Pure. */
export function renderChargebacks(page: ListPage): Html {
  return html`<p class="lead">
      The service says neither why a customer disputes a sale nor until when to answer: look both up
      there on the day a chargeback comes. Card networks give a few weeks, counted from a day that
      may lie before the one shown here.
    </p>
    ${ageHint(page.ageMs)} ${renderAges(page)} ${renderFilters(page.filter)} ${renderOpen(page)}
    ${renderRatios(page.ratios)} ${renderEnded(page)}`;
}

const amountOf = ({ amountMinor, currency }: Chargeback) => ({ totalMinor: amountMinor, currency });

function renderAges({ open, now }: ListPage): Html | null {
  if (open.length === 0) return null;
  const daysOf = ({ openedAt }: Chargeback) => (now.getTime() - openedAt.getTime()) / dayMs;
  return html`<ul class="cards stats plain-list">
    ${ages.map(([name, most], n) => {
      const least = ages[n - 1]?.[1] ?? -Infinity;
      const these = open.filter((each) => daysOf(each) > least && daysOf(each) <= most);
      return html`<li class="card">
        <h2>${name}</h2>
        <p class="stat">${these.length}</p>
        ${these.length > 0 && sums(these.map(amountOf))}
      </li>`;
    })}
  </ul>`;
}

const selected: Html = html`selected`;

const renderFilters = ({ who, snoozed }: ChargebackFilter): Html =>
  html`<form class="filters" method="get" action="/chargebacks" role="search">
    <div>
      <label for="who">Who has it</label>
      <select id="who" name="who">
        <option value="">all</option>
        <option value="mine" ${who === "mine" && selected}>me</option>
        <option value="unassigned" ${who === "unassigned" && selected}>nobody</option>
      </select>
    </div>
    <div>
      <label for="snoozed">Snoozed</label>
      <select id="snoozed" name="snoozed">
        <option value="">all</option>
        <option value="hide" ${snoozed === "hide" && selected}>hide</option>
        <option value="only" ${snoozed === "only" && selected}>only these</option>
      </select>
    </div>
    <button class="second">Show</button>
  </form>`;

const chargebackLink = ({ key, orderNumber }: Chargeback): Html =>
  html`<a href="/chargebacks/${encodeURIComponent(key)}"
    >${orderNumber === null || orderNumber.trim() === "" ? shortId(key) : html`Order ${outside(orderNumber)}`}</a
  >`;

function renderOpen({ open, cases, names, filter, own, now, wallNow, timeZone }: ListPage): Html {
  const isFiltered = filter.who !== null || filter.snoozed !== null;
  const nameOf = ({ customerId }: Chargeback): Html | string => {
    const found = names.get(customerId ?? "");
    return found === undefined
      ? "–"
      : outside(found.name === "" ? (found.email ?? "no name") : found.name);
  };
  return table<Chargeback>(
    [
      { name: "Sale", cell: chargebackLink },
      {
        name: "Amount",
        kind: "number",
        cell: ({ amountMinor, currency }) => money(amountMinor, currency),
      },
      { name: "Card", cell: ({ cardBrand }) => outside(cardBrand ?? "unknown") },
      ...(names.size > 0 ? [{ name: "Customer", cell: nameOf }] : []),
      {
        name: "Open for",
        cell: ({ openedAt }) =>
          html`${durationText(now.getTime() - openedAt.getTime())}
            <span class="hint">since ${time(openedAt, timeZone)}</span>`,
      },
      {
        name: "Who has it",
        cell: ({ key }) => caseMarks(cases.get(key) ?? untouched, { own, now: wallNow, timeZone }),
      },
    ],
    open,
    {
      caption: "To answer, the oldest first",
      empty: isFiltered
        ? html`No open chargeback matches. <a href="/chargebacks">Show all</a>`
        : html`No chargeback is open. Try it on the sandbox:
            <code>npx tallyhook trigger order.disputed</code>`,
    },
  );
}

function renderRatios(ratios: ListPage["ratios"]): Html | null {
  if (ratios === null) return null;
  if (ratios === "unknown") {
    return html`<p class="hint">
      How near the card networks' thresholds are takes longer than a page may:
      <code>npx tallyhook report network-monitor</code>
    </p>`;
  }
  return table<Ratio>(
    [
      { name: "Network", cell: ({ brand }) => outside(brand) },
      { name: "Programme", cell: ({ programme }) => outside(programme) },
      { name: "Chargebacks", kind: "number", cell: ({ disputes }) => disputes },
      { name: "Threshold", kind: "number", cell: ({ limit }) => limit },
      {
        name: "Of sales",
        kind: "number",
        cell: ({ ratio }) => (ratio === null ? "–" : `${ratio} %`),
      },
      {
        name: "State",
        cell: ({ isOver, disputes, limit }) =>
          isOver
            ? state("over the threshold", "bad")
            : disputes >= 0.8 * limit
              ? state("near", "warn")
              : state("below", "good"),
      },
    ],
    ratios,
    {
      caption:
        "This month against each network's threshold, without the fraud reports that the service does not know",
      empty: html`No network counts a chargeback of this month, as far as the mirror knows.`,
    },
  );
}

/** How chargebacks ended, by the card's network and currency: the service gives no reason to go by. */
function renderEnded({ ended }: ListPage): Html {
  const groups = new Map<string, Chargeback[]>();
  for (const each of ended) {
    const key = JSON.stringify([each.cardBrand ?? "unknown", each.currency]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  const rows = [...groups.values()].sort((a, b) => b.length - a.length);
  const part = (these: readonly Chargeback[]): Html =>
    html`${these.length} <span class="hint">${sums(these.map(amountOf))}</span>`;
  return table<Chargeback[]>(
    [
      { name: "Network", cell: ([first]) => outside(first?.cardBrand ?? "unknown") },
      { name: "Currency", cell: ([first]) => first?.currency?.toUpperCase() ?? "unknown" },
      {
        name: "Won",
        kind: "number",
        cell: (these) => part(these.filter(({ state: end }) => end === "dismissed")),
      },
      {
        name: "Lost",
        kind: "number",
        cell: (these) => part(these.filter(({ state: end }) => end === "accepted")),
      },
      {
        name: "Share won",
        kind: "number",
        cell: (these) =>
          `${Math.round((100 * these.filter(({ state: end }) => end === "dismissed").length) / these.length)} %`,
      },
    ],
    rows,
    {
      caption: `Won and lost in the last twelve months: ${counted(ended.length, "chargeback")}`,
      empty: html`No chargeback ended in the last twelve months.`,
    },
  );
}
