import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import { type Html, html } from "../../../platform/html.ts";
import { redacted } from "../../../platform/redaction.ts";
import { money, outside, time } from "../../../app/dashboard/elements/values.ts";

/** The display of field values. */
export interface ValueStyle {
  currency: string | null;
  timeZone: string;
  /** Whether the visitor may see personal data. */
  showsPersons: boolean;
  /** Whether the visitor may read people's texts. */
  readsTexts: boolean;
}

/** The name of a field, which breaks after its dots and underscores only. */
export const fieldName = (field: string): Html =>
  html`<code class="field"
    >${outside(field, 80)
      .markup.split(/(?<=[._])/)
      .map((part, n) => html`${n > 0 && html`<wbr />`}${{ markup: part }}`)}</code
  >`;

/** The value of a field by the last key of its name. */
export function fieldValue(field: string, value: unknown, { currency, timeZone, showsPersons }: ValueStyle): Html {
  if (value === null || value === undefined) return html`<span class="hint">none</span>`;
  if (value === redacted) {
    return html`<span class="hint">${showsPersons ? "erased" : "hidden: requires person:read"}</span>`;
  }
  if (typeof value === "number" && isMoney(field)) return money(value, currency);
  if (typeof value === "string") {
    const moment = canonicalTimestamp(value);
    return moment === null ? outside(value) : time(new Date(moment), timeZone);
  }
  if (typeof value === "boolean") return html`${value ? "yes" : "no"}`;
  if (typeof value === "number") return html`${value}`;
  return html`<code>${outside(JSON.stringify(value))}</code>`;
}

const moneyKeys = new Set(["amount", "total", "subtotal", "discount_amount", "price"]);

const isMoney = (field: string): boolean => moneyKeys.has(field.slice(field.lastIndexOf(".") + 1));
