import { type Html, html } from "../../../platform/html.ts";

const formats = new Map<string, { time: Intl.DateTimeFormat; name: Intl.DateTimeFormat }>();

/** An unambiguous time in words, with its exact moment for a pointer and for screen readers. */
export function time(at: Date, timeZone: string): Html {
  return html`<time datetime="${at.toISOString()}" title="${at.toISOString()}">${timeText(at, timeZone)}</time>`;
}

/** Formats as in `2026-11-22 03:41 UTC`. */
export function timeText(at: Date, timeZone: string): string {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = {
      time: new Intl.DateTimeFormat("sv-SE", {
        timeZone,
        dateStyle: "short",
        timeStyle: "short",
        hourCycle: "h23",
      }),
      name: new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "short" }),
    };
    formats.set(timeZone, format);
  }
  const name = format.name.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value;
  return `${format.time.format(at)} ${name ?? timeZone}`;
}

const moments = /(\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?)/;

/** A sentence of ours whose days and times break over no line. */
export const withWholeMoments = (sentence: string): Html =>
  html`${sentence.split(moments).map((part, n) => (n % 2 === 1 ? html`<span class="moment">${part}</span>` : part))}`;
