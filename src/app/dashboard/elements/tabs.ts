import { type Html, html } from "../../../platform/html.ts";

/** The pages of a group as tabs; `current` is the path of one. */
export const tabs = (label: string, pages: readonly { path: string; name: string }[], current: string): Html =>
  html`<nav class="tabs" aria-label="${label}">
    ${pages.map(({ path, name }) => html`<a href="${path}" ${path === current && currentTab}>${name}</a>`)}
  </nav>`;

const currentTab: Html = html`aria-current="true"`;
