import { type Html, html } from "../../../platform/html.ts";

/** A form's word on which state of the thing its sender saw. */
export const decidedOn = (version: string | number): Html =>
  html`<input type="hidden" name="decided-on" value="${version}" />`;

/** What the form says; empty where it says nothing, which no state equals. */
export const versionOf = (form: URLSearchParams): string => form.get("decided-on") ?? "";
