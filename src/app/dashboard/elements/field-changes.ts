import type { FieldChange } from "../../../core/mirror/compare/field-changes.ts";
import { type Html, html } from "../../../platform/html.ts";
import { linesWithoutControls } from "../../../platform/readable-text.ts";
import { table } from "./table.ts";

const mostRows = 200;
const mostCharacters = 2_000;

/** Fields before and after. Personal values are shown only if `mayRead`. */
export function fieldChanges(
  changes: readonly FieldChange[],
  { caption, mayRead }: { caption: string; mayRead: boolean },
): Html {
  const cell = (value: unknown, isPersonal: boolean): Html => {
    if (value === null || value === undefined) return html`<span class="hint">nothing</span>`;
    if (isPersonal && !mayRead) return html`<span class="hint">hidden: personal</span>`;
    return html`<bdi class="value">${valueText(value)}</bdi>`;
  };
  return html`${table(
    [
      {
        name: "Field",
        cell: ({ field }) => html`<bdi class="value">${cut(linesWithoutControls(field), 200)}</bdi>`,
      },
      { name: "Before", cell: ({ before, isPersonal }) => cell(before, isPersonal) },
      { name: "After", cell: ({ after, isPersonal }) => cell(after, isPersonal) },
    ],
    changes.slice(0, mostRows),
    { caption, empty: html`No field differs.`, staysTable: true },
  )}
  ${changes.length > mostRows && html`<p class="hint">The first ${mostRows} of ${changes.length} fields.</p>`}
  ${
    !mayRead &&
    changes.some(({ isPersonal }) => isPersonal) &&
    html`<p class="hint">Personal values require the permission person:read.</p>`
  }`;
}

function valueText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return cut(linesWithoutControls(text), mostCharacters);
}

const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most).toWellFormed()}… (${text.length} characters)`;
