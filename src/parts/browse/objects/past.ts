import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import type { KnownObject } from "../../../core/mirror/blame/object-history.ts";
import { type Html, html } from "../../../platform/html.ts";
import { PageError } from "../../../app/dashboard/route.ts";
import { moment } from "./source.ts";

/** A moment at which an object's history grew; fixed form. */
export type Stop = string;

/** States of one transaction are recorded within less, and become known together. */
const togetherMs = 1_000;

/** The moments at which an object's history grew, the oldest first. */
export function stopsOf({ states }: Pick<KnownObject, "states">): Stop[] {
  const inOrder = states.toSorted((a, b) => (a.recordedAt < b.recordedAt ? -1 : 1));
  const stops: { at: Stop; fromMs: number }[] = [];
  for (const { recordedAt: at } of inOrder) {
    const last = stops.at(-1);
    const atMs = Date.parse(at);
    if (last !== undefined && atMs - last.fromMs <= togetherMs) last.at = at;
    else stops.push({ at, fromMs: atMs });
  }
  return stops.map(({ at }) => at);
}

/**
 * The requested time, fixed form; null for the present. `stop`: the number of a moment, from 1; `as-of`: a time, UTC
 * where it names no zone. Throws `PageError`.
 */
export function pastOf(query: URLSearchParams, stops: readonly Stop[]): string | null {
  const stop = query.get("stop");
  if (stop !== null) return stops[Number(stop) - 1] ?? null;
  const text = query.get("as-of")?.trim() ?? "";
  if (text === "") return null;
  const at = [text, `${text}Z`, `${text}:00Z`].map(canonicalTimestamp).find((each) => each !== null);
  if (at !== undefined && at !== null) return at;
  throw new PageError(400, `“${text.slice(0, 60)}” is no time. Write one like 2026-11-22T12:00 (UTC).`);
}

export interface PastChoice {
  path: string;
  stops: readonly Stop[];
  /** Null: the present is shown. */
  at: string | null;
  timeZone: string;
}

/** Ways to an earlier state: a slider, a time, and links. Works without script. */
export function renderPastChoice({ path, stops, at, timeZone }: PastChoice): Html | null {
  if (stops.length === 0) return null;
  const current = at === null ? stops.length : stops.filter((stop) => stop <= at).length;
  return html`<section class="card" id="past">
    <h2>As it was known at another time</h2>
    ${
      stops.length > 1 &&
      html`<form class="filters" method="get" action="${path}">
        <div class="wide">
          <label for="stop">Moment 1 (the first) to ${stops.length} (the last)</label>
          <input
            id="stop"
            name="stop"
            type="range"
            min="1"
            max="${stops.length}"
            step="1"
            value="${Math.max(1, current)}"
          />
        </div>
        <button class="second">Show</button>
      </form>`
    }
    <form class="filters" method="get" action="${path}">
      <div>
        <label for="as-of">Time (UTC)</label>
        <input id="as-of" name="as-of" type="datetime-local" step="1" value="${at === null ? "" : at.slice(0, 19)}" />
      </div>
      <button class="second">Show</button>
    </form>
    <details>
      <summary>All ${stops.length} moments at which something was learned</summary>
      <ol>
        ${stops.map(
          (stop, n) =>
            html`<li>
              <a
                href="${path}?as-of=${encodeURIComponent(stop)}"
                ${n + 1 === current && at !== null && html`aria-current="true"`}
                >${moment(stop, timeZone)}</a
              >
            </li>`,
        )}
      </ol>
    </details>
  </section>`;
}

/** The notice that the page shows the past. */
export const renderPastNotice = (path: string, at: string, timeZone: string): Html =>
  html`<p class="problem past" role="note">
    This is the past: what was known at ${moment(at, timeZone)}. Later states are left out.
    <a href="${path}">Show it as it is now</a>
  </p>`;
