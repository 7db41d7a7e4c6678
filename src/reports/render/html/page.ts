import { html } from "../../../platform/html.ts";
import type { Html } from "../../../platform/html.ts";
import { visible } from "../../../platform/visible-text.ts";
import { aboutLines } from "../../about.ts";
import type { About } from "../../about.ts";
import { patterns } from "./figures.ts";
import { styleOf } from "./style.ts";

/** Told apart without colour. */
const signs = { PASS: "✓", FAIL: "✕", INCOMPLETE: "…" } as const;

/**
 * One page that holds all it needs: no script, and a policy that forbids whatever comes from elsewhere. Wide tables are printed
 * across. Pure.
 */
export function renderPage(about: About, body: readonly (Html | null)[], isWide: boolean): string {
  const lines = new Map(aboutLines(about));
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
        <meta
          http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'"
        />
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
            ${aboutLines(about).find(([label]) => label === "Note")?.[1] ?? ""} No currency is added
            to another.
          </footer>
        </main>
      </body>
    </html> `;
  return page.markup;
}

function renderVerdict({ proof: { verdict } }: About, result: string): Html {
  const why = result.slice(verdict.length).replace(/^ \((.*)\)$|^: /, "$1");
  const said = why === "" ? "Everything was read, and no serious finding is open." : capital(why);
  return html`<div class="verdict ${verdict}" role="status">
    <strong>${signs[verdict]} ${verdict}</strong><span>${said}</span>
  </div>`;
}

const renderLine = ([label, value]: readonly [string, string]): Html =>
  html`<dt>${label}</dt>
    <dd class="${label === "SHA-256" ? "hash" : "text"}">${visible(value)}</dd>`;

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

const titleOf = (report: string): string =>
  report === "mrr" ? "Monthly recurring revenue" : capital(report.replaceAll("-", " "));
