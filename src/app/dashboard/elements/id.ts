import { type Html, html } from "../../../platform/html.ts";

const shownCharacters = 13;

/** A long id in a list: its beginning, and the whole under the pointer. */
export function shortId(id: string): Html {
  if (id.length <= shownCharacters + 3) return html`<span class="id">${id}</span>`;
  return html`<span class="id" title="${id}">${id.slice(0, shownCharacters)}…</span>`;
}

/**
 * A whole id, copied by a press on its button; without script the button is not shown. `page`: the path of its link.
 */
export const copyableId = (id: string, page?: string): Html =>
  html`${page === undefined ? html`<span class="id">${id}</span>` : html`<a class="id" href="${page}">${id}</a>`}
    <button type="button" class="copy needs-script" data-copy="${id}" aria-label="Copy ${id}">Copy</button>`;
