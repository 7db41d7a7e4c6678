import { type Html, html } from "../../../platform/html.ts";
import { counted, durationText, withoutControls } from "../../../platform/readable-text.ts";
import { type MinorUnits, moneyText } from "../../../platform/money.ts";
import { shortenedTo } from "../../../platform/redaction.ts";

const formats = new Map<string, { time: Intl.DateTimeFormat; name: Intl.DateTimeFormat }>();

/** An unambiguous time in words, with its exact moment for a pointer and for screen readers. */
export function time(at: Date, timeZone: string): Html {
  return html`<time datetime="${at.toISOString()}" title="${at.toISOString()}">${timeText(at, timeZone)}</time>`;
}

/** A time by our own clocks, long ago or near: with script its distance, such as `14 s ago`, which stays right. */
export function ago(at: Date, timeZone: string): Html {
  const exact = timeText(at, timeZone);
  return html`<time class="ago" datetime="${at.toISOString()}" title="${exact}">${exact}</time>`;
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

/** The distance to a time, and the time itself. */
export function until(at: Date, now: Date, timeZone: string): Html {
  const ms = at.getTime() - now.getTime();
  const distance = ms >= 0 ? `in ${durationText(ms)}` : `${durationText(-ms)} ago`;
  return html`${distance} <span class="hint">${time(at, timeZone)}</span>`;
}

const shownCharacters = 13;

/** A long id in a list: its beginning, and the whole under the pointer. */
export function shortId(id: string): Html {
  if (id.length <= shownCharacters + 3) return html`<span class="id">${id}</span>`;
  return html`<span class="id" title="${id}">${id.slice(0, shownCharacters)}…</span>`;
}

/**
 * A whole id, copied by a press on its button; without script the button is not shown. `page`: the path of its link.
 */
export const copyableId = (id: string, page?: string): Html =>
  html`${page === undefined ? html`<span class="id">${id}</span>` : html`<a class="id" href="${page}">${id}</a>`}
    <button type="button" class="copy needs-script" data-copy="${id}" aria-label="Copy ${id}">Copy</button>`;

/** The address of an object's page. */
export const objectPath = (resource: string, id: string): string =>
  `/objects/${encodeURIComponent(resource)}/${encodeURIComponent(id)}`;

/** A link to an object by its id, which is cut where it is long. */
export const objectLink = (resource: string, id: string): Html =>
  html`<a href="${objectPath(resource, id)}">${shortId(id)}</a>`;

/** A link to an object by its whole id, which a press on a button copies. */
export const wholeObjectLink = (resource: string, id: string): Html =>
  copyableId(withoutControls(id), objectPath(resource, id));

/** An amount in minor units with its currency, unbroken; names a missing part. */
export const money = (minor: MinorUnits | null, currency: string | null): Html =>
  html`<span class="money">${moneyText(minor, currency)}</span>`;

export type Tone = "good" | "warn" | "bad" | "calm";

/** A state in words. The colour only repeats it. */
export const state = (text: string, tone: Tone): Html => html`<span class="state ${tone}">${text}</span>`;

const severityTones: Readonly<Record<string, Tone>> = {
  critical: "bad",
  high: "bad",
  error: "bad",
  warning: "warn",
  info: "calm",
};

/** How severe an alert or a finding is. */
export const severityState = (severity: string): Html => state(severity, severityTones[severity] ?? "warn");

/** Outside text in one line: its direction marks affect only itself, it breaks anywhere, and a long one is cut. */
export function outside(text: string, most = 300): Html {
  const shown = text.length <= most ? text : `${shortenedTo(text, most)}…`;
  return html`<bdi class="outside">${withoutControls(shown)}</bdi>`;
}

/** An amount in minor units; either may be missing. */
interface Amount {
  totalMinor: bigint | null;
  currency: string | null;
}

/** The totals of the known amounts, by currency. */
function sumsOf(amounts: readonly Amount[]): [currency: string | null, sum: bigint][] {
  const sums = new Map<string | null, bigint>();
  for (const { totalMinor, currency } of amounts) {
    if (totalMinor !== null) sums.set(currency, (sums.get(currency) ?? 0n) + totalMinor);
  }
  return [...sums].sort(([a], [b]) => (a ?? "").localeCompare(b ?? ""));
}

/** One amount a currency, and the number of unknown amounts; a dash where there are none. */
export function sums(amounts: readonly Amount[]): Html {
  if (amounts.length === 0) return html`–`;
  const unknown = amounts.filter(({ totalMinor }) => totalMinor === null).length;
  return html`<ul class="sums plain-list">
    ${sumsOf(amounts).map(([currency, sum]) => html`<li>${money(sum, currency)}</li>`)}${
      unknown > 0 && html`<li>${counted(unknown, "unknown amount")}</li>`
    }
  </ul>`;
}
