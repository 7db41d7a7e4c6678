import { type Html, html } from "../../../platform/html.ts";

const tabs = [
  { path: "/reconciliation", name: "Coverage" },
  { path: "/reconciliation/runs", name: "Runs" },
  { path: "/reconciliation/findings", name: "Findings" },
] as const;

export type Tab = (typeof tabs)[number]["name"];

/** A page of the group, with the way to the others. Pure. */
export const framed = (current: Tab, body: Html): Html =>
  html`<nav class="tabs" aria-label="Reconciliation">
      ${tabs.map(
        ({ path, name }) => html`<a href="${path}" ${name === current && currentTab}>${name}</a>`,
      )}
    </nav>
    ${body}`;

const currentTab: Html = html`aria-current="true"`;

export const runLink = (run: number): Html =>
  html`<a href="/reconciliation/runs/${run}">run ${run}</a>`;
