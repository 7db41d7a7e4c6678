import { type Html, html } from "../../../platform/html.ts";
import { tabs } from "../../../app/dashboard/elements/tabs.ts";

const pages = [
  { path: "/reconciliation", name: "Coverage" },
  { path: "/reconciliation/runs", name: "Runs" },
  { path: "/reconciliation/findings", name: "Findings" },
] as const;

export type Tab = (typeof pages)[number]["name"];

/** A page of the group, with the way to the others. */
export const framed = (current: Tab, body: Html): Html =>
  html`${tabs("Reconciliation", pages, pages.find(({ name }) => name === current)?.path ?? "")} ${body}`;

export const runLink = (run: number): Html => html`<a href="/reconciliation/runs/${run}">run ${run}</a>`;
