import { type Html, html } from "../../platform/html.ts";

const shownCharacters = 13;

/** A long id in a list: its beginning, the whole under the pointer, and copied on click. Pure. */
export function shortId(id: string): Html {
  if (id.length <= shownCharacters + 3) return html`<span class="id">${id}</span>`;
  return html`<span class="id" title="${id}">${id.slice(0, shownCharacters)}…</span>`;
}
