import { type Html, html } from "../../../platform/html.ts";
import { type MinorUnits, moneyText } from "../../../platform/money.ts";

/** An amount in minor units with its currency, unbroken; names a missing part. */
export const money = (minor: MinorUnits | null, currency: string | null): Html =>
  html`<span class="money">${moneyText(minor, currency)}</span>`;
