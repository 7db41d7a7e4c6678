import { type Html, html } from "../../../platform/html.ts";
import { someOf } from "../../../platform/readable-text.ts";
import type { Tone } from "../../../app/dashboard/elements/values.ts";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import type { ProvedDay } from "../coverage/proof.ts";
import { type CalendarDay, type CalendarMonth, weekdays } from "./calendar.ts";
import { listName } from "./words.ts";

/** The sign repeats the colour for those who do not see it. */
const dayStates: Readonly<Record<ProvedDay["state"], { text: string; sign: string; tone: Tone }>> = {
  proved: { text: "proved", sign: "✓", tone: "good" },
  part: { text: "in part", sign: "–", tone: "warn" },
  outdated: { text: "too old", sign: "!", tone: "warn" },
  unproved: { text: "not proved", sign: "×", tone: "bad" },
  so_far: { text: "so far", sign: "…", tone: "calm" },
  ahead: { text: "still to come", sign: "", tone: "calm" },
};

/** The weeks of a month, a square for each day and list. A day leads to the newest run that proved something of it. */
export function renderCalendar({ name, resources, days }: CalendarMonth, timeZone: string): Html {
  const shown = new Set(days.flatMap(({ lists }) => lists.map(({ state }) => state)));
  return html`<div class="calendar-frame">
    <table class="calendar">
      <caption>
        Each day of ${name}, in ${timeZone}
      </caption>
      <thead>
        <tr>
          ${weekdays.map((weekday) => html`<th scope="col">${weekday}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${weeksOf(days).map(
          (week) =>
            html`<tr>
              ${week.map((day) => (day === null ? html`<td></td>` : renderDay(day, resources, name)))}
            </tr>`,
        )}
      </tbody>
    </table>
    <p class="hint">
      The squares of a day: ${resources.map(listName).join(", ")}. A day leads to the newest run that read it.
    </p>
    <ul class="calendar-legend plain-list">
      ${Object.entries(dayStates)
        .filter(([state]) => state !== "ahead" && shown.has(state as ProvedDay["state"]))
        .map(([, state]) => html`<li>${square(state)}${state.text}</li>`)}
    </ul>
  </div>`;
}

/** Rows of seven days from Monday on; null: a day of another month. */
function weeksOf(days: readonly CalendarDay[]): (CalendarDay | null)[][] {
  const cells = [...Array<null>(days[0]?.weekday ?? 0).fill(null), ...days];
  return Array.from({ length: Math.ceil(cells.length / 7) }, (_, week) =>
    Array.from({ length: 7 }, (_unused, n) => cells[week * 7 + n] ?? null),
  );
}

function renderDay({ name, date, lists }: CalendarDay, resources: readonly Resource[], month: string): Html {
  const number = String(Number(date.slice(8)));
  const day = html`<time datetime="${date}">${number}</time>`;
  if (lists.every(({ state }) => state === "ahead")) {
    return html`<td class="ahead">${day}<span class="hidden">: still to come</span></td>`;
  }
  const newest = newestOf(lists);
  return html`<td>
    ${newest === null ? day : html`<a href="/reconciliation/runs/${newest}">${day}<span class="hidden"> ${month}: run ${newest}</span></a>`}
    <ul class="squares">
      ${lists.map((list, n) => {
        const says = `${listName(resources[n] ?? "")}, ${name}: ${wordsOf(list)}`;
        return html`<li title="${says}">${square(dayStates[list.state])}<span class="hidden">${says}</span></li>`;
      })}
    </ul>
  </td>`;
}

const square = ({ sign, tone }: { sign: string; tone: Tone }): Html =>
  html`<span class="square ${tone}" aria-hidden="true">${sign}</span>`;

const newestOf = (lists: readonly ProvedDay[]): number | null =>
  lists.flatMap(({ by }) => by).toSorted((a, b) => Number(b.readAt) - Number(a.readAt) || b.run - a.run)[0]?.run ??
  null;

/** `proved by run 2`. The run's own page has the time of the read. */
function wordsOf({ state, by }: ProvedDay): string {
  if (state === "so_far" && by.length === 0) return "with the next run";
  const { text } = dayStates[state];
  return by.length === 0 ? text : `${text} by ${someOf(by.map(({ run }) => `run ${run}`))}`;
}
