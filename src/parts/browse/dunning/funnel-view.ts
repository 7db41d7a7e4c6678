import type { CurrencyFunnel, Funnel } from "../../../core/mirror/dunning/funnel.ts";
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

const monthInput = { label: "Month of the first decline", unset: "2026-11", type: "month" } as const;

const attempts = ["At the 2nd attempt", "At the 3rd", "At the 4th", "Later"];

const part = ({ currency }: CurrencyFunnel, { count, minor }: CurrencyFunnel["lost"]): Html =>
  html`${count} <span class="hint">${money(minor, currency)}</span>`;
