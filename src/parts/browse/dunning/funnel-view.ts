import type { CurrencyFunnel, Funnel } from "../../../core/mirror/dunning/funnel.ts";
import { type Html, html } from "../../../platform/html.ts";
import { money } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";

/** The declines of a month, such as `2026-11`. */
export function renderFunnel({ currencies, figures }: Funnel, month: string, query: URLSearchParams): Html {
  return html`<section class="funnel" aria-labelledby="funnel">
    <h2 id="funnel">Outcome of the declines of ${month}</h2>
    <form class="filters" method="get" action="/dunning">
      ${[...query].map(([name, value]) => name !== "month" && html`<input type="hidden" name="${name}" value="${value}" />`)}
      <div>
        <label for="month">Month of the first decline</label>
        <input id="month" name="month" type="month" value="${month}" pattern="\\d{4}-\\d{2}" placeholder="2026-11" />
      </div>
      <button class="second">Show the month</button>
    </form>
    ${figures}
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

const attempts = ["At the 2nd attempt", "At the 3rd", "At the 4th", "Later"];

const part = ({ currency }: CurrencyFunnel, { count, minor }: CurrencyFunnel["lost"]): Html =>
  html`${count} <span class="hint">${money(minor, currency)}</span>`;
