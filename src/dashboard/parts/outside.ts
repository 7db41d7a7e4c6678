import { type Html, html } from "../../platform/html.ts";
import { withoutControls } from "../../platform/readable-text.ts";

/** Text from outside: isolated, so that marks of direction change nothing else, and cut. Pure. */
export function outside(text: string, most: number): Html {
  const shown = withoutControls(text);
  return html`<bdi
    >${shown.length <= most ? shown : `${shown.slice(0, most).toWellFormed()}…`}</bdi
  >`;
}
