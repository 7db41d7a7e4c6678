import type { Beside } from "../../../app/dashboard/elements/beside-page.ts";
import { renderFigures } from "../../../app/figures/svg-figures.ts";
import type { CurrencyFunnel, Funnel, WeekOfDeclines } from "../../../core/mirror/dunning/funnel.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { weekFigures } from "./weeks.ts";
import { type Html, html } from "../../../platform/html.ts";
import { filterForm } from "../../../app/dashboard/elements/filter-form.ts";
import { money } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";

/** The declines of a month, such as `2026-11`. */
export function renderFunnel({ currencies, figures }: Funnel, month: string, query: URLSearchParams): Html {
  const withMonth = new URLSearchParams(query);
  withMonth.set("month", month);
  return html`<section class="funnel" aria-labelledby="funnel">
    <h2 id="funnel">Outcome of the declines of ${month}</h2>
    ${filterForm("/dunning", withMonth, { month: monthInput }, { does: "Show the month" })} ${figures}
    ${table(
      [
        { name: "Currency", cell: ({ currency }) => currency?.toUpperCase() ?? "unknown" },
        { name: "Declined", kind: "number", cell: (row) => part(row, row.declined) },
        ...attempts.map((name, n) => ({
          name,
          kind: "number" as const,
          cell: ({ recoveredAt }: CurrencyFunnel) => recoveredAt[n] ?? 0,
        })),
        { name: "Recovered", kind: "number", cell: (row) => part(row, row.recovered) },
        { name: "Still open", kind: "number", cell: (row) => part(row, row.inProgress) },
        { name: "Lost", kind: "number", cell: (row) => part(row, row.lost) },
      ],
      currencies,
      {
        caption: `Renewals first declined in ${month}, as the report Dunning funnel has them`,
        empty: html`No renewal was declined for the first time in ${month}.`,
      },
    )}
  </section>`;
}

/** The declines of the last weeks. */
export function renderWeeks(weeks: Beside<WeekOfDeclines[]>): Html {
  const frame = (body: Html): Html =>
    html`<section>
      <h2>Declines by week</h2>
      ${body}
    </section>`;
  if (weeks === "computing") {
    return frame(
      html`<p class="hint">They are being summed up. <a href="/dunning">Load the page again in a moment</a></p>`,
    );
  }
  if (weeks === "too slow") {
    return frame(
      html`<p class="hint">
        Summing them up takes longer than a page may: <code>${tallyhook("report dunning-funnel")}</code>
      </p>`,
    );
  }
  const figures = weekFigures(weeks);
  return frame(
    renderFigures(figures, "weeks") ?? html`<p class="hint">No renewal was declined in ${weeks.length} weeks.</p>`,
  );
}

const monthInput = { label: "Month of the first decline", unset: "2026-11", type: "month" } as const;

const attempts = ["At the 2nd attempt", "At the 3rd", "At the 4th", "Later"];

const part = ({ currency }: CurrencyFunnel, { count, minor }: CurrencyFunnel["lost"]): Html =>
  html`${count} <span class="hint">${money(minor, currency)}</span>`;
