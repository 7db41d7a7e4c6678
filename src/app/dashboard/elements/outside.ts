import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { shortenedTo } from "../../../platform/redaction.ts";

/** Outside text in one line: its direction marks affect only itself, it breaks anywhere, and a long one is cut. */
export function outside(text: string, most = 300): Html {
  const shown = text.length <= most ? text : `${shortenedTo(text, most)}…`;
  return html`<bdi class="outside">${withoutControls(shown)}</bdi>`;
}
