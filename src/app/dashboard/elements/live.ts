import { type Html, html } from "../../../platform/html.ts";

/**
 * A part of a page that keeps itself up to date where script runs (assets/script.js): every few seconds the page is
 * fetched again and this part replaced. It pauses by its button, while text in it is selected, and while the page is
 * hidden. Without script it stays as loaded. One a page.
 */
export const live = (content: Html): Html =>
  html`<div class="row live needs-script">
      <button type="button" class="second" data-live-toggle aria-pressed="false">Pause</button>
      <p class="hint" role="status" data-live-said></p>
    </div>
    <div data-live>${content}</div>`;
