import { type Html, html } from "../../platform/html.ts";
import { PageError } from "../route.ts";

/** A form's word on which state of the thing its sender saw. Pure. */
export const decidedOn = (version: string | number): Html =>
  html`<input type="hidden" name="decided-on" value="${version}" />`;

/** What the form says; empty where it says nothing, which no state equals. Pure. */
export const versionOf = (form: URLSearchParams): string => form.get("decided-on") ?? "";

/** What a form gets that was filled in on an earlier state. `details` shows what changed. */
export const outdated = (what: string, details: Html | null = null): PageError =>
  new PageError(
    409,
    `${what} has changed since you opened the page, so nothing was done. Look at it again, then decide.`,
    { details },
  );
