import type { Resource } from "../../../mirror/snapshot.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Gap } from "../../../reconcile/coverage/coverage.ts";
import type { ProvedDay } from "../../../reconcile/coverage/proof.ts";
import { type Tone, state } from "../../parts/state.ts";
import { timeText, withWholeMoments } from "../../parts/time.ts";
import { runLink } from "./frame.ts";
import { type Trust, gapText, renderTrust, usualLagMs } from "./trust.ts";
import { listName } from "./words.ts";

export interface CoveragePage {
  trust: Trust;
  month: CalendarMonth;
  timeZone: string;
}

export interface CalendarMonth {
  /** `November 2026`. */
  name: string;
  /** As the address names months; null where there is nothing to see. */
  earlier: string;
  later: string | null;
  resources: readonly Resource[];
  days: readonly CalendarDay[];
  /** What nothing proves, of the month until now. */
  gaps: readonly Gap[];
  /** Service time. */
  now: Date;
}

export interface CalendarDay {
  /** `Mon 3`. */
  name: string;
  /** `2026-11-03`. */
  date: string;
  /** In the order of the month's resources. */
  lists: readonly ProvedDay[];
}

/** Pure. */
export function renderCoverage({ trust, month, timeZone }: CoveragePage): Html {
  return html`${renderTrust(trust)}
    <section>
      <div class="row">
        <h2 id="calendar">What is proved of ${month.name}</h2>
        <nav class="row end" aria-label="Months">
          <a href="/reconciliation?month=${month.earlier}#calendar">Earlier month</a>
          ${month.later !== null && html`<a href="/reconciliation?month=${month.later}#calendar">Later month</a>`}
        </nav>
      </div>
      <p class="lead">
        A day is proved when a run has read everything that was created on it, and each object was
        as the mirror has it or was corrected. Days in ${timeZone}.
      </p>
    </section>
    ${renderGaps(month, timeZone)} ${renderCalendar(month, timeZone)}`;
}

const shownGaps = 12;

function renderGaps({ gaps, name, now }: CalendarMonth, timeZone: string): Html {
  const isNews = (gap: Gap) => isFresh(gap, now);
  const faults = gaps.filter((gap) => !isNews(gap));
  const news = newsText(gaps.filter(isNews), timeZone);
  if (faults.length === 0) {
    return html`<p class="notice">
      No gap: all that was created in ${name} is proved.${news !== "" && ` ${news}`}
    </p>`;
  }
  const more = faults.length - shownGaps;
  return html`<ul class="gaps">
    ${faults
      .slice(0, shownGaps)
      .map(
        (gap) =>
          html`<li>
            ${listName(gap.resource)}: nothing proves ${withWholeMoments(gapText(gap, timeZone))}.
          </li>`,
      )}
    ${more > 0 && html`<li>${counted(more, "more gap")}.</li>`}
    ${news !== "" && html`<li>${news}</li>`}
  </ul>`;
}

/** What was created since the last run is proved by the next one, which is no fault. Pure. */
function isFresh({ from, before }: Gap, now: Date): boolean {
  const isTail = before !== null && Date.parse(before) >= now.getTime();
  return isTail && from !== null && now.getTime() - Date.parse(from) < usualLagMs;
}

function newsText(gaps: readonly Gap[], timeZone: string): string {
  const froms = gaps.flatMap(({ from }) => (from === null ? [] : [Date.parse(from)]));
  if (froms.length === 0) return "";
  return `What was created since ${timeText(new Date(Math.min(...froms)), timeZone)} is proved by the next run.`;
}

function renderCalendar({ name, resources, days }: CalendarMonth, timeZone: string): Html {
  const caption = `Each day of ${name} by list, in ${timeZone}`;
  const begun = days.filter(({ lists }) => !lists.every(isToCome));
  const [first, last] = [days[begun.length], days.at(-1)];
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
    <table class="calendar">
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          <th scope="col">Day</th>
          ${resources.map((resource) => html`<th scope="col">${listName(resource)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${begun.map(
          (day) =>
            html`<tr>
              <th scope="row"><time datetime="${day.date}">${day.name}</time></th>
              ${day.lists.map((list) => html`<td>${renderDay(list)}</td>`)}
            </tr>`,
        )}
        ${
          first !== undefined &&
          html`<tr>
            <th scope="row">${first.name}${last !== first && ` to ${last?.name}`}</th>
            <td colspan="${resources.length}" class="hint">still to come</td>
          </tr>`
        }
      </tbody>
    </table>
  </div>`;
}

const dayStates: Readonly<Record<ProvedDay["state"], { text: string; tone: Tone }>> = {
  proved: { text: "proved", tone: "good" },
  part: { text: "in part", tone: "warn" },
  outdated: { text: "too old", tone: "warn" },
  unproved: { text: "not proved", tone: "bad" },
  ahead: { text: "so far", tone: "calm" },
};

const shownRuns = 3;

const isToCome = ({ state: name, by }: ProvedDay): boolean => name === "ahead" && by.length === 0;

/** When a run read it, the run's own page says. */
function renderDay(day: ProvedDay): Html {
  if (isToCome(day)) return html`<span class="hint">still to come</span>`;
  const { text, tone } = dayStates[day.state];
  const more = day.by.length - shownRuns;
  return html`${state(text, tone)}
    <span class="by"
      >${day.by.slice(0, shownRuns).map(({ run }, n) => html`${n > 0 && ", "}${runLink(run)}`)}${more > 0 && ` and ${more} more`}</span
    >`;
}
