import { type Html, html } from "../../../platform/html.ts";
import { durationText } from "../../../platform/readable-text.ts";
import { time } from "./time.ts";

/** The distance to a time, and the time itself. */
export function until(at: Date, now: Date, timeZone: string): Html {
  const ms = at.getTime() - now.getTime();
  const distance = ms >= 0 ? `in ${durationText(ms)}` : `${durationText(-ms)} ago`;
  return html`${distance} <span class="hint">${time(at, timeZone)}</span>`;
}
