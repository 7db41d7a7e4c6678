import { type Html, html } from "../../../platform/html.ts";

/** A form's hidden field with the state that its sender saw. */
export const decidedOn = (version: string | number): Html =>
  html`<input type="hidden" name="decided-on" value="${version}" />`;

/** The state in the form; empty where it has none, which equals no state. */
export const versionOf = (form: URLSearchParams): string => form.get("decided-on") ?? "";
