import { type Html, type HtmlPart, html } from "../../../platform/html.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";
import { defaultAccounts } from "../base/account-map.ts";
import { type Verdict, factLines } from "../base/report-facts.ts";
import { type ColumnKind, type Report, type Row, hasCurrency } from "../base/report.ts";
import { type ReportDocument, capital, cellTexts, headText, titleOf } from "../render/document.ts";
import { formatsOf } from "../render/formats.ts";
import { patterns, renderFigures } from "../../../app/figures/svg-figures.ts";
import { withQuery } from "../../../app/dashboard/elements/paging.ts";
import { type Tone, state } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { tabs } from "../../../app/dashboard/elements/tabs.ts";
import { accountField, accountNames } from "./report-options.ts";

export function renderReports(reports: readonly Report[]): Html {
  return html`${reportTabs("/reports")}
    <p class="lead">
      Each report says above its rows how far it is proved, and has a SHA-256 that is the same in every format.
    </p>
    ${table(
      [
        {
          name: "Report",
          cell: ({ name }) => html`<a href="${addressOf(name)}">${titleOf(name)}</a>`,
        },
        { name: "Answers", kind: "long", cell: ({ explains }) => capital(explains) },
      ],
      reports,
      { caption: counted(reports.length, "report"), empty: html`There is no report.` },
    )}`;
}

export const reportTabs = (current: "/reports" | "/reports/close"): Html =>
  tabs(
    "Reports",
    [
      { path: "/reports", name: "All reports" },
      { path: "/reports/close", name: "Close a month" },
    ],
    current,
  );

export const addressOf = (report: string): string => `/reports/${encodeURIComponent(report)}`;

export interface ReportForm {
  report: Report;
  query: URLSearchParams;
  timeZone: string;
  /** Shown where the options are wrong. */
  problem: string | null;
}

export function renderReportForm({ report, query, timeZone, problem }: ReportForm): Html {
  const value = (name: string): string => withoutControls(query.get(name) ?? "").slice(0, 200);
  const described = problem === null ? false : html`aria-describedby="problem"`;
  const field = (name: string, label: string, hint: string): Html =>
    html`<div>
      <label for="${name}">${label}</label>
      <input id="${name}" name="${name}" value="${value(name)}" placeholder="${hint}" autocomplete="off" ${described} />
    </div>`;
  return html`<p class="lead">${capital(report.explains)}.</p>
    ${problem !== null && html`<p class="problem" role="alert" id="problem">${problem}</p>`}
    <form class="filters" method="get" action="${addressOf(report.name)}">
      ${field("from", "From", "2026-10")} ${field("to", "To", "today")} ${field("as-of", "As of", "now")}
      ${hasCurrency(report) && field("currency", "Currency", "all")}
      <button class="second">Show</button>
      ${report.takesAccounts === true && renderAccounts(query)}
    </form>
    <p class="hint">
      From and to are days in ${timeZone}, both included, or months; without them it is the month so far. “As of”
      repeats what was known at a time, as in 2026-11-01T00:00:00Z, byte for byte: it must be a minute past.
    </p>`;
}

/** Fields for the accounts that the journal books to. */
export function renderAccounts(query: URLSearchParams): Html {
  return html`<details class="across">
    <summary>Accounts of the journal</summary>
    <div class="filters">
      ${accountNames.map(
        (name) =>
          html`<div>
            <label for="${accountField(name)}">${capital(name)}</label>
            <input
              id="${accountField(name)}"
              name="${accountField(name)}"
              maxlength="64"
              value="${query.get(accountField(name)) ?? defaultAccounts[name]}"
            />
          </div>`,
      )}
    </div>
  </details>`;
}

const verdictTones: Readonly<Record<Verdict, Tone>> = {
  PASS: "good",
  FAIL: "bad",
  INCOMPLETE: "warn",
};

export const verdict = (text: Verdict): Html => state(text, verdictTones[text]);

const formatNames = {
  csv: "CSV",
  xlsx: "Excel",
  json: "JSON",
  html: "HTML, to print and sign",
  table: "Text",
  ledger: "ledger, hledger",
  beancount: "beancount",
} as const;

export function renderDocument(
  report: Report,
  { about, columns, exponents, figures, shown, sums }: ReportDocument,
  query: URLSearchParams,
): Html {
  const lines = factLines(about).filter(([label]) => label !== "Report");
  const left = about.rows - shown.length;
  const download = `${addressOf(about.report)}/download`;
  return html`<section class="card">
      <div class="row">
        <h2>${about.period.from} to ${about.period.to}</h2>
        ${verdict(about.proof.verdict)}
      </div>
      <dl class="facts">
        ${lines.map(
          ([label, text]) =>
            html`<dt>${label}</dt>
              <dd class="${label === "SHA-256" ? "id" : "text"}">${withoutControls(text)}</dd>`,
        )}
      </dl>
      <nav class="row" aria-label="Downloads">
        <span class="hint">Download:</span>
        ${formatsOf(report)
          .toSorted((one, two) => order.indexOf(one) - order.indexOf(two))
          .map((format) => html`<a href="${withQuery(download, query, { format })}">${formatNames[format]}</a>`)}
      </nav>
    </section>
    ${figures.length > 0 && html`${patterns}${renderFigures(figures)}`}
    ${table(
      columns.map((column, n) => ({
        name: headText(column),
        kind: kindOf(column.kind),
        cell: (texts: readonly HtmlPart[]) => texts[n] ?? "",
      })),
      shown.map((row) => cells(row)),
      {
        caption: counted(about.rows, "row"),
        empty: html`There is nothing to show for this period.`,
        sums: sums.map(({ currency, cells: sum }) => [
          `Sum${currency === null ? "" : ` ${currency}`}`,
          ...cellTexts(columns, sum, exponents).slice(1),
        ]),
      },
    )}
    ${left > 0 && html`<p class="hint">${counted(left, "more row is", "more rows are")} not shown. Sums, charts and SHA-256 cover all; CSV, Excel and JSON have every row.</p>`}`;

  function cells(row: Row): HtmlPart[] {
    return cellTexts(columns, row, exponents).map((text, n) => {
      if (columns[n]?.name === "outcome" && (text === "differs" || text === "over")) {
        return state(text, "bad");
      }
      return isId(text) ? html`<span class="id">${text}</span>` : html`<bdi>${text}</bdi>`;
    });
  }
}

const order: readonly string[] = ["html", "xlsx", "csv", "ledger", "beancount", "json", "table"];

const isId = (text: string): boolean => /^[0-9a-f-]{20,}$/.test(text);

const kindOf = (kind: ColumnKind): "number" | "moment" | "long" =>
  kind === "text" ? "long" : kind === "day" || kind === "month" || kind === "time" ? "moment" : "number";
