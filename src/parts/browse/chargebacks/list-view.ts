import type { NearProgramme } from "../../../app/answers.ts";
import type { Beside } from "../../../app/dashboard/elements/beside-page.ts";
import type { Chargeback, OpenChargeback } from "../../../core/mirror/chargebacks.ts";
import type { CustomerName } from "../../../core/mirror/customer-names.ts";
import { type Case, untouched } from "../../../app/people/cases.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { durationText } from "../../../platform/readable-text.ts";
import { caseMarks } from "../../../app/dashboard/elements/case.ts";
import { type CaseFilter, caseFilters, isCaseShown } from "../../../app/dashboard/elements/case-filter.ts";
import { filterForm } from "../../../app/dashboard/elements/filter-form.ts";
import { money, outside, shortId, state, sums, time } from "../../../app/dashboard/elements/values.ts";
import { oldestFirst, pager } from "../../../app/dashboard/elements/paging.ts";
import { patterns, renderFigures } from "../../../app/figures/svg-figures.ts";
import { ratioFigures, standingOf } from "./ratio-figure.ts";
import { table } from "../../../app/dashboard/elements/table.ts";

/** Null: without reports. */
export type Ratios = Beside<readonly NearProgramme[]> | null;

export interface ListPage {
  open: readonly Chargeback[];
  /** Where the next page begins; null where there is none. */
  next: string | null;
  /** All that match, for the sums; null on a page after the first. */
  summed: readonly OpenChargeback[] | null;
  /** There are more than `lookThrough`: only the oldest were read. */
  isMore: boolean;
  lookThrough: number;
  cases: ReadonlyMap<string, Case>;
  /** Empty for a visitor who may not see customers' names. */
  names: ReadonlyMap<string, CustomerName>;
  filter: CaseFilter;
  query: URLSearchParams;
  ratios: Ratios;
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

export function shownChargebacks<Row extends { key: string }>(
  chargebacks: readonly Row[],
  cases: ReadonlyMap<string, Case>,
  filter: CaseFilter,
  { own, wallNow }: { own: number; wallNow: Date },
): Row[] {
  return chargebacks.filter(({ key }) => isCaseShown(cases.get(key) ?? untouched, filter, { own, now: wallNow }));
}

export function renderOpenChargebacks(page: ListPage): Html {
  const { query, next, isMore, lookThrough, summed } = page;
  return html`<p class="lead">
      The service says neither why a customer disputes a sale nor until when to answer: look both up there on the day a
      chargeback comes. Card networks give a few weeks, counted from a day that may lie before the one shown here.
    </p>
    <p><a href="/chargebacks?show=ended">How chargebacks ended</a></p>
    ${renderAges(page)} ${renderFigure(page.ratios)} ${filterForm("/chargebacks", query, caseFilters)}
    ${
      isMore &&
      html`<p class="problem">
        More than ${lookThrough.toLocaleString("en-GB")} chargebacks are open. This page looked through that many of
        them, the oldest${summed !== null && ", and the sums are of these"}: the next page goes on.
      </p>`
    }
    ${renderOpen(page)} ${pager("/chargebacks", query, next, oldestFirst)} ${renderRatios(page.ratios)}`;
}

export const amountOf = ({ amountMinor, currency }: Pick<Chargeback, "amountMinor" | "currency">) => ({
  totalMinor: amountMinor,
  currency,
});

function renderAges({ summed, now }: ListPage): Html | null {
  if (summed === null || summed.length === 0) return null;
  const daysOf = ({ openedAt }: OpenChargeback) => (now.getTime() - openedAt.getTime()) / dayMs;
  return html`<ul class="cards stats plain-list">
    ${ages.map(([name, most], n) => {
      const least = ages[n - 1]?.[1] ?? -Infinity;
      const these = summed.filter((each) => daysOf(each) > least && daysOf(each) <= most);
      return html`<li class="card">
        <h2>${name}</h2>
        <p class="stat">${these.length}</p>
        ${these.length > 0 && sums(these.map(amountOf))}
      </li>`;
    })}
  </ul>`;
}

export const chargebackLink = ({ key, orderNumber }: Chargeback): Html =>
  html`<a href="/chargebacks/${encodeURIComponent(key)}"
    >${orderNumber === null || orderNumber.trim() === "" ? shortId(key) : html`Order ${outside(orderNumber)}`}</a
  >`;

function renderOpen(page: ListPage): Html {
  const { open, cases, names, filter, query, next, own, now, wallNow, timeZone } = page;
  const isFiltered = filter.who !== null || filter.snoozed !== null;
  const nameOf = ({ customerId }: Chargeback): Html | string => {
    const found = names.get(customerId ?? "");
    return found === undefined ? "–" : outside(found.name === "" ? (found.email ?? "no name") : found.name);
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
        name: "Assigned to",
        cell: ({ key }) => caseMarks(cases.get(key) ?? untouched, { own, now: wallNow, timeZone }),
      },
    ],
    open,
    {
      caption: "To answer, the oldest first",
      empty: isFiltered
        ? html`No open chargeback matches${next !== null && " so far"}. <a href="/chargebacks">Show all</a>`
        : query.has("after")
          ? html`No further chargeback is open. <a href="/chargebacks">Show the first ones</a>`
          : html`No chargeback is open. Try it on the sandbox: <code>${tallyhook("trigger order.disputed")}</code>`,
    },
  );
}

const standings = {
  over: state("over the threshold", "bad"),
  near: state("near", "warn"),
  below: state("below", "good"),
} as const;

/** Drawn where people look; the table below the list has the numbers. */
const renderFigure = (ratios: Ratios): Html | null =>
  Array.isArray(ratios) ? html`${patterns}${renderFigures(ratioFigures(ratios), "thresholds")}` : null;

function renderRatios(ratios: Ratios): Html | null {
  if (ratios === null) return null;
  if (ratios === "computing") {
    return html`<p class="hint">
      The distance to the card networks' thresholds is being computed.
      <a href="/chargebacks">Load the page again in a moment</a>
    </p>`;
  }
  if (ratios === "too slow") {
    return html`<p class="hint">
      Computing the distance to the card networks' thresholds takes longer than a page may:
      <code>${tallyhook("report network-monitor")}</code>
    </p>`;
  }
  return table<NearProgramme>(
    [
      { name: "Network", cell: ({ brand }) => outside(brand) },
      { name: "Programme", cell: ({ programme }) => outside(programme) },
      { name: "Chargebacks", kind: "number", cell: ({ disputes }) => disputes },
      { name: "Threshold", kind: "number", cell: ({ limit }) => limit },
      {
        name: "Share of sales",
        kind: "number",
        cell: ({ ratio }) => (ratio === null ? "–" : `${ratio} %`),
      },
      {
        name: "State",
        cell: (programme) => standings[standingOf(programme)],
      },
    ],
    ratios,
    {
      caption: "This month against each network's threshold, without the fraud reports that the service does not know",
      empty: html`No network counts a chargeback of this month, as far as the mirror knows.`,
    },
  );
}
