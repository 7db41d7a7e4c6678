import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { type CloseCheck, type StoredClose, brokenSealAdvice } from "../close/verify.ts";
import { linesWithoutControls } from "../../../platform/readable-text.ts";
import { type Tone, copyableId, state, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import type { Verdict } from "../base/report-facts.ts";
import { reportTabs, verdict } from "./report-view.ts";

export interface ClosedMonths {
  next: { month: string; headline: string; tone: Tone };
  /** The oldest first. */
  closes: readonly StoredClose[];
  /** Whether any month may be named: none is closed yet. */
  isFirst: boolean;
  timeZone: string;
}

export function renderClosedMonths({ next, closes, isFirst, timeZone }: ClosedMonths): Html {
  return html`${reportTabs("/reports/close")}
    <section class="card">
      <div class="row">
        <h2><a href="${monthAddress(next.month)}">${monthName(next.month)}</a></h2>
        ${state(next.headline, next.tone)}
        <a class="button end" href="${monthAddress(next.month)}">See what is left to do</a>
      </div>
      <p class="lead">
        A month is closed once and permanently: the rows of every report, under one seal. Months are closed in order.
        ${
          isFirst &&
          "The first close takes in everything that came before its month, so any month that is over can be the " +
            "first."
        }
      </p>
      ${
        isFirst &&
        html`<form class="filters" method="get" action="/reports/close">
          <div>
            <label for="month">Begin with another month</label>
            <input id="month" name="month" placeholder="2026-10" pattern="[0-9]{4}-[0-9]{2}" required />
          </div>
          <button class="second">Look at it</button>
        </form>`
      }
    </section>
    ${table(
      [
        {
          name: "Month",
          kind: "moment",
          cell: ({ facts }) => html`<a href="${monthAddress(facts.month)}">${facts.month}</a>`,
        },
        { name: "Closed", cell: ({ facts }) => time(new Date(facts.closed_at), timeZone) },
        { name: "By", kind: "long", cell: ({ facts }) => facts.closed_by ?? "not kept" },
        {
          name: "Prepared by",
          kind: "long",
          cell: ({ facts }) => facts.prepared_by ?? state("one person did both", "calm"),
        },
        { name: "Verdict", cell: ({ facts }) => verdict(facts.verdict as Verdict) },
        {
          name: "Seal (SHA-256)",
          kind: "long",
          cell: ({ sha256 }) => html`<span class="id">${sha256}</span>`,
        },
      ],
      closes.toReversed(),
      {
        caption: "Closed months, the newest first",
        empty: html`No month is closed yet. On the command line: <code>${tallyhook("close 2026-10")}</code>`,
      },
    )}
    ${closes.length > 0 && html`<p><a class="button second" href="/reports/close/verify">Verify every seal</a></p>`}`;
}

export const monthAddress = (month: string): string => `/reports/close/${encodeURIComponent(month)}`;

/** Formats as in `October 2026`. */
export const monthName = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleDateString("en-GB", {
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });

export function renderVerified(
  { closes, problems }: { closes: readonly CloseCheck[]; problems: readonly string[] },
  timeZone: string,
): Html {
  const isIntact = problems.length === 0 && closes.every((close) => close.problems.length === 0);
  return html`${
    isIntact
      ? html`<p class="notice" role="status">
          Every closed month matches its seal. Compare the newest seal with the one that was signed.
        </p>`
      : html`<section class="problem" role="alert">
          <h2>A closed month no longer matches its seal</h2>
          <p>${brokenSealAdvice}</p>
          <ul>
            ${closes.flatMap(({ month, problems: own }) => own.map((problem) => html`<li>${month}: ${linesWithoutControls(problem)}.</li>`))}
            ${problems.map((problem) => html`<li>${linesWithoutControls(problem)}.</li>`)}
          </ul>
        </section>`
  }
  ${table(
    [
      {
        name: "Month",
        kind: "moment",
        cell: ({ month }) => html`<a href="${monthAddress(month)}">${month}</a>`,
      },
      { name: "Closed", cell: ({ closedAt }) => time(new Date(closedAt), timeZone) },
      { name: "By", kind: "long", cell: ({ closedBy }) => closedBy ?? "not kept" },
      {
        name: "Prepared by",
        kind: "long",
        cell: ({ preparedBy }) => preparedBy ?? "the same person",
      },
      { name: "The seal covers", cell: ({ covers }) => coversInWords[covers] },
      {
        name: "Result",
        cell: ({ problems: own }) => (own.length === 0 ? state("intact", "good") : state("differs", "bad")),
      },
      { name: "Seal (SHA-256)", kind: "long", cell: ({ sha256 }) => copyableId(sha256) },
    ],
    closes,
    { caption: "Closed months, the oldest first", empty: html`No month is closed yet.` },
  )}`;
}

const coversInWords = {
  rows: "the rows of the reports (earlier version)",
  results: "results and rows (earlier version)",
  everything: "everything",
} as const;
