import { type Html, html } from "../../../platform/html.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";
import { type ReportFacts, factLines, soFar } from "../base/report-facts.ts";
import { type Exponents, grouped } from "../base/currencies.ts";
import type { Column, Row } from "../base/report.ts";
import { type ReportDocument, capital, cellTexts, collectDocument, headText, titleOf } from "./document.ts";
import type { Rendering, RenderingInput } from "./rendering.ts";
import { patterns, renderFigures } from "../../../app/figures/svg-figures.ts";

/** A browser lays out this many quickly. Charts, sums, hash and number of rows cover all rows. */
const shownRows = 2_000;
/** With more columns, the page is printed in landscape. */
const portraitColumns = 9;

/** Renders a page for people: the facts about the report, charts and rows. */
export const renderHtml = ({ write, ...input }: RenderingInput): Rendering =>
  collectDocument(input, { shownRows }, async (document) => {
    const body = [renderFigures(document.figures), renderRows(document)];
    await write(renderPage(document.about, body, document.columns.length > portraitColumns));
  });

/** Verdicts can be distinguished without colour. */
const signs = { PASS: "✓", FAIL: "✕", INCOMPLETE: "…" } as const;

/**
 * A self-contained page: no script, and a content security policy that forbids loading anything. Wide tables are
 * printed in landscape.
 */
function renderPage(about: ReportFacts, body: readonly (Html | null)[], isWide: boolean): string {
  const lines = new Map(factLines(about));
  const [title, result] = [titleOf(about.report), lines.get("Result") ?? ""];
  for (const label of ["Report", "Result", "Note"]) lines.delete(label);
  const { from, to } = about.period;
  const footer = `${about.report} ${from} to ${to} - ${about.proof.verdict} - SHA-256 ${about.sha256}`;
  const orientation = isWide ? "landscape" : "portrait";
  const style = { markup: styleOf(orientation, footer) };
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
        <title>${title}, ${from} to ${to}</title>
        <style>
          ${style}
        </style>
      </head>
      <body>
        ${patterns}
        <main class="${orientation}">
          <p class="kind">Tallyhook · finance report</p>
          <header class="head">
            <div>
              <h1>${title}</h1>
              <p class="explains">${capital(about.explains)}</p>
            </div>
            ${renderVerdict(about, result)}
          </header>
          <dl class="about">${[...lines].map(renderLine)}</dl>
          ${body}
          <div class="signing">
            <p>Prepared by</p>
            <p>Approved by</p>
            <p>Date</p>
          </div>
          <footer class="foot">
            ${factLines(about).find(([label]) => label === "Note")?.[1] ?? ""} Amounts in different currencies are never
            added.
          </footer>
        </main>
      </body>
    </html> `;
  return page.markup;
}

function renderVerdict({ proof: { verdict } }: ReportFacts, result: string): Html {
  const word = result.startsWith(soFar) ? soFar : verdict;
  const why = result.slice(word.length).replace(/^ \((.*)\)$|^: |^, /, "$1");
  const said = why === "" ? "Everything was read, and no serious finding is open." : capital(why);
  return html`<div class="verdict ${verdict}" role="status">
    <strong>${signs[verdict]} ${word}</strong><span>${said}</span>
  </div>`;
}

const renderLine = ([label, value]: readonly [string, string]): Html =>
  html`<dt>${label}</dt>
    <dd class="${label === "SHA-256" ? "hash" : "text"}">${withoutControls(value)}</dd>`;

/** Renders the rows and their sums. The header is repeated on every printed page. */
function renderRows({ about, columns, exponents, shown, sums }: ReportDocument): Html {
  if (about.rows === 0) return html`<p class="none">There is nothing to show for this period.</p>`;
  const left = about.rows - shown.length;
  return html`<div class="rows" role="region" aria-label="Rows" tabindex="0">
    <table>
      <caption>
        Rows
      </caption>
      <thead>
        <tr>
          ${columns.map(renderHead)}
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          (row) =>
            html`<tr>
              ${renderCells(columns, row, exponents)}
            </tr>`,
        )}
      </tbody>
      ${
        sums.length > 0 &&
        html`<tbody class="sums">
          ${sums.map(({ currency, cells }) => {
            const [, ...rest] = renderCells(columns, cells, exponents);
            return html`<tr>
              <th scope="row">Sum${currency !== null && ` ${currency}`}</th>
              ${rest}
            </tr>`;
          })}
        </tbody>`
      }
    </table>
    ${left > 0 && html`<p class="more">${grouped(counted(left, "more row is", "more rows are"))} not shown; the sums cover all rows. --format csv has every row.</p>`}
  </div>`;
}

const renderHead = (column: Column): Html =>
  html`<th scope="col" class="${classOf(column.kind)}">${headText(column)}</th>`;

const renderCells = (columns: readonly Column[], row: Row, exponents: Exponents): Html[] =>
  cellTexts(columns, row, exponents).map((text, n) => {
    const { kind, name } = columns[n] ?? { kind: "text", name: "" };
    const isBad = name === "outcome" && (text === "differs" || text === "over");
    return html`<td class="${isBad ? "bad" : isId(text) ? "id" : classOf(kind)}">${text}</td>`;
  });

const isId = (text: string): boolean => /^[0-9a-f-]{20,}$/.test(text);

function classOf(kind: Column["kind"]): string {
  if (["money", "count", "number", "percent"].includes(kind)) return "number";
  return ["day", "month", "time"].includes(kind) ? "moment" : "text";
}

const light = `
  --paper: #ffffff; --ground: #f3f4f2; --ink: #191d22; --muted: #586069; --rule: #d6dadd; --hair: #e9ebec;
  --base: #27598c; --gain: #2c7a62; --loss: #b4501f; --other: #7c8791;
  --pass: #1f6b4f; --pass-ground: #e4f2ea; --fail: #a3261d; --fail-ground: #fbe8e5; --incomplete: #7d5200; --incomplete-ground: #fcf1d8;`;
const dark = `
  --paper: #171b20; --ground: #0f1215; --ink: #e8eaec; --muted: #a3acb5; --rule: #3a424a; --hair: #272d33;
  --base: #6ea4dc; --gain: #5fb898; --loss: #e58a55; --other: #8b96a1;
  --pass: #83d0ae; --pass-ground: #17332a; --fail: #ff9e93; --fail-ground: #43201d; --incomplete: #f0c66b; --incomplete-ground: #3a2e13;`;

/** Light or dark on screen, by the reader's system settings; printed on white A4. */
const rules = `
* { box-sizing: border-box; }
:root { color-scheme: light dark; ${light} }
@media screen and (prefers-color-scheme: dark) { :root { ${dark} } }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.5 "Inter", "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1080px; margin: 28px auto; padding: 40px 48px 44px; background: var(--paper); border: 1px solid var(--hair); border-radius: 6px; }
main.landscape { max-width: 1240px; }
.kind { margin: 0 0 2px; color: var(--muted); font-size: 11.5px; letter-spacing: .09em; text-transform: uppercase; }
.head { display: flex; justify-content: space-between; align-items: flex-start; gap: 32px; border-bottom: 2px solid var(--ink); padding-bottom: 16px; }
h1 { margin: 0; font-size: 27px; line-height: 1.2; letter-spacing: -.012em; font-weight: 650; }
.explains { margin: 5px 0 0; max-width: 62ch; color: var(--muted); }
.verdict { flex: none; max-width: 320px; padding: 9px 15px 10px; border: 1px solid currentColor; border-radius: 5px; }
.verdict strong { display: block; font-size: 16px; letter-spacing: .03em; }
.verdict span { display: block; font-size: 12px; line-height: 1.4; }
.verdict.PASS { color: var(--pass); background: var(--pass-ground); }
.verdict.FAIL { color: var(--fail); background: var(--fail-ground); }
.verdict.INCOMPLETE { color: var(--incomplete); background: var(--incomplete-ground); }
.about { display: grid; grid-template-columns: max-content 1fr; gap: 3px 22px; margin: 17px 0 30px; font-size: 12.5px; }
.about dt { color: var(--muted); }
.about dd { margin: 0; overflow-wrap: anywhere; }
.hash, td.id { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: .92em; }
.figures { display: grid; grid-template-columns: 1fr 1fr; gap: 26px 40px; margin-bottom: 34px; }
figure { margin: 0; break-inside: avoid; min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption, h2 { margin: 0 0 10px; font-size: 14.5px; font-weight: 650; }
figure svg[role="img"] { display: block; width: 100%; height: auto; overflow: visible; font-size: 11.5px; }
.describes { margin: 4px 0 0; color: var(--muted); font-size: 12px; }
.legend { display: flex; flex-wrap: wrap; gap: 3px 20px; margin: 0 0 8px; padding: 0; list-style: none; color: var(--muted); font-size: 12px; }
.legend li { display: flex; align-items: center; gap: 7px; }
.legend svg { width: 12px; height: 12px; }
.patterns { position: absolute; width: 0; height: 0; }
svg text { fill: var(--muted); }
svg .label, svg .value { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .value, svg .threshold-label { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
svg .grid { stroke: var(--hair); }
svg .zero { stroke: var(--muted); }
svg .joint { stroke: var(--muted); stroke-dasharray: 2 2; }
svg .threshold { stroke: var(--fail); stroke-width: 1.5; stroke-dasharray: 6 4; }
svg .threshold-label { fill: var(--fail); font-weight: 600; }
.mark, svg .mark { fill: var(--fail); color: var(--fail); font-size: 15px; font-weight: 700; }
.base { fill: var(--base); }
.gain { fill: var(--gain); }
.loss { fill: url(#fill-loss); }
.other { fill: url(#fill-other); }
.loss-ground { fill: var(--loss); } .loss-stripe { fill: var(--paper); opacity: .38; }
.other-ground { fill: var(--other); } .other-dot { fill: var(--paper); opacity: .6; }
.rows { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: 14.5px; font-weight: 650; padding-bottom: 8px; }
th, td { padding: 5px 9px; text-align: left; vertical-align: top; border-bottom: 1px solid var(--hair); }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
thead th { vertical-align: bottom; color: var(--muted); font-weight: 600; line-height: 1.3; border-bottom: 1.5px solid var(--ink); }
th.number, td.number { text-align: right; }
td.number, td.moment { white-space: nowrap; }
td.id { overflow-wrap: anywhere; min-width: 20ch; }
td.text { min-width: 6ch; max-width: 34ch; overflow-wrap: break-word; }
.sums td, .sums th { font-weight: 650; border-bottom: 1px solid var(--rule); }
.sums tr:first-child > * { border-top: 1.5px solid var(--ink); }
td.bad { color: var(--fail); font-weight: 650; }
.more, .none { color: var(--muted); }
.foot { margin-top: 26px; padding-top: 12px; border-top: 1px solid var(--rule); color: var(--muted); font-size: 12px; }
.signing { display: none; }
@media screen and (max-width: 860px) {
  main { margin: 0; padding: 22px 18px; border: 0; border-radius: 0; }
  .head { display: block; } .verdict { margin-top: 14px; }
  .figures { grid-template-columns: minmax(0, 1fr); } figure.wide { overflow-x: auto; } figure.wide svg[role="img"] { min-width: 680px; }
  .about { grid-template-columns: 1fr; } .about dd { margin-bottom: 6px; }
}
@media print {
  :root { color-scheme: light; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { background: none; font-size: 9.5pt; }
  main, main.landscape { max-width: none; margin: 0; padding: 0; border: 0; }
  .figures { gap: 14px 26px; margin-bottom: 20px; }
  .rows { overflow: visible; }
  table { font-size: 8pt; } th, td { padding: 2.5pt 5pt; }
  td.id { font-size: 6.4pt; min-width: 20ch; }
  thead { display: table-header-group; } tr { break-inside: avoid; }
  .sums { break-inside: avoid; }
  .signing { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 24px; margin-top: 46px; break-inside: avoid; }
  .signing p { margin: 0; padding-top: 4px; border-top: 1px solid var(--ink); color: var(--muted); font-size: 8pt; }
}`;

/** The style sheet of a page. `footer` is printed at the foot of every page. */
function styleOf(orientation: "portrait" | "landscape", footer: string): string {
  const margin = `font: 7.5pt "Inter", Arial, sans-serif; color: #586069;`;
  return `@page { size: A4 ${orientation}; margin: 13mm 12mm 15mm;
  @bottom-left { content: "${cssText(footer)}"; ${margin} }
  @bottom-right { content: counter(page) " / " counter(pages); ${margin} } }${rules}`;
}

/** Drops every character that could end a CSS string or the style element. */
const cssText = (text: string): string => text.replace(/[^\w .,:/-]/g, "");
