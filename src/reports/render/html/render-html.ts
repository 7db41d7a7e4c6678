import type { Cells } from "../../figures/figure.ts";
import type { Row } from "../../report.ts";
import type { Rendering, RenderingInput } from "../rendering.ts";
import { createTotals } from "../totals.ts";
import { renderFigures } from "./figures.ts";
import { renderPage } from "./page.ts";
import { renderRows } from "./rows-table.ts";

/** What a browser lays out at once; the charts, the sums, the hash and the number of rows are of all rows. */
const shownRows = 2_000;
/** More columns than these are printed across. */
const portraitColumns = 9;

/**
 * A page for people: what the report is, charts, and the rows. Reports with charts are made of sums and have few rows; of
 * the others no more is kept than is shown.
 */
export function renderHtml({ report, columns, exponents, write }: RenderingInput): Rendering {
  const shown: Row[] = [];
  const charted: Cells[] = [];
  const totals = createTotals(columns);
  return {
    rows(rows) {
      totals.add(rows);
      shown.push(...rows.slice(0, shownRows - shown.length));
      if (report.figures !== undefined) {
        for (const row of rows) {
          charted.push(Object.fromEntries(columns.map(({ name }, n) => [name, row[n] ?? null])));
        }
      }
      return Promise.resolve();
    },
    async end(about) {
      const body = [
        renderFigures(report.figures?.(charted, exponents) ?? []),
        renderRows({ columns, exponents, shown, totals, rowCount: about.rows }),
      ];
      await write(renderPage(about, body, columns.length > portraitColumns));
    },
  };
}
