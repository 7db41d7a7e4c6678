import { tallyhook } from "../../../platform/command-line.ts";
import { type ProvedDay, listProofs, provedParts } from "../coverage/proof.ts";
import { sumOpenFindings } from "../findings/search-findings.ts";
import type { PageDeps, Route } from "../../../app/dashboard/route.ts";
import { type CalendarMonth, boundsOf, calendarOf, monthOf } from "./calendar.ts";
import { framed, runLink } from "./frame.ts";
import { type Trust, gapText, renderTrust, trustOf } from "./trust.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { type Tone, state, time, timeText, withWholeMoments } from "../../../app/dashboard/elements/values.ts";
import { listName } from "./words.ts";

export const coverageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/reconciliation",
    access: "status:read",
    async answer(deps, { query }) {
      const { db, timeZone, clock, serviceClock } = deps;
      const [now, at] = [serviceClock.now(), clock.now()];
      const month = monthOf(query.get("month"), now, timeZone);
      const [proofs, open, parts] = await Promise.all([
        listProofs(db, { now, at }),
        sumOpenFindings(db),
        provedParts(db, { ...boundsOf(month, timeZone), at }),
      ]);
      const trust = trustOf({ proofs, open, now, timeZone });
      const calendar = calendarOf(month, { proofs, parts, now, timeZone });
      return {
        kind: "page",
        title: "Reconciliation",
        body: framed("Coverage", renderCoverage({ trust, month: calendar, timeZone })),
        command: tallyhook("reconcile --dry-run"),
      };
    },
  },
];

/** The mirror's trust now. Two statements. */
export async function readTrust({
  db,
  clock,
  serviceClock,
  timeZone,
}: Pick<PageDeps, "db" | "clock" | "serviceClock" | "timeZone">): Promise<Trust> {
  const now = serviceClock.now();
  const [proofs, open] = await Promise.all([listProofs(db, { now, at: clock.now() }), sumOpenFindings(db)]);
  return trustOf({ proofs, open, now, timeZone });
}

interface CoveragePage {
  trust: Trust;
  month: CalendarMonth;
  timeZone: string;
}

export function renderCoverage({ trust, month, timeZone }: CoveragePage): Html {
  return html`${renderTrust(trust)}
    <section>
      <div class="row">
        <h2 id="calendar">Proof of ${month.name}</h2>
        <nav class="row end" aria-label="Months">
          <a href="/reconciliation?month=${month.earlier}#calendar">Earlier month</a>
          ${month.later !== null && html`<a href="/reconciliation?month=${month.later}#calendar">Later month</a>`}
        </nav>
      </div>
      <p class="lead">
        A day is proved when a run has read everything that was created on it, and each object matched the mirror or was
        corrected. Days in ${timeZone}.
      </p>
    </section>
    ${renderGaps(month, timeZone)} ${renderCalendar(month, timeZone)}`;
}

const shownGaps = 12;

function renderGaps(month: CalendarMonth, timeZone: string): Html {
  const { gaps, awaitedFrom } = month;
  if (gaps.length === 0) return html`<p class="notice">${provedText(month, timeZone)}</p>`;
  const more = gaps.length - shownGaps;
  return html`<ul class="gaps">
    ${gaps
      .slice(0, shownGaps)
      .map(
        (gap) => html`<li>${listName(gap.resource)}: nothing proves ${withWholeMoments(gapText(gap, timeZone))}.</li>`,
      )}
    ${more > 0 && html`<li>${counted(more, "more gap")}.</li>`}
    ${
      awaitedFrom !== null &&
      html`<li>The next run is to prove what was created since ${time(awaitedFrom, timeZone)}.</li>`
    }
  </ul>`;
}

/** States how far a month without gaps is proved. */
function provedText({ name, provedUntil, awaitedFrom, isOver }: CalendarMonth, zone: string): Html {
  const next = awaitedFrom !== null && timeText(awaitedFrom, zone);
  if (provedUntil === null) {
    return withWholeMoments(`${name} is not proved yet: the next run is to prove what was created since ${next}.`);
  }
  if (next === false && isOver) return html`No gap: all that was created in ${name} is proved.`;
  return withWholeMoments(
    `No gap: all that was created in ${name} before ${timeText(provedUntil, zone)} is proved.` +
      (next === false ? "" : " The next run is to prove what was created since."),
  );
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
  so_far: { text: "so far", tone: "calm" },
  ahead: { text: "still to come", tone: "calm" },
};

const shownRuns = 3;

const isToCome = ({ state: name }: ProvedDay): boolean => name === "ahead";

/** The run's own page has the time of the read. */
function renderDay(day: ProvedDay): Html {
  const { text, tone } = dayStates[day.state];
  if (isToCome(day)) return html`<span class="hint">${text}</span>`;
  if (day.by.length === 0 && day.state === "so_far") {
    return html`<span class="hint">with the next run</span>`;
  }
  const more = day.by.length - shownRuns;
  return html`${state(text, tone)}
    <span class="by"
      >${day.by.slice(0, shownRuns).map(({ run }, n) => html`${n > 0 && ", "}${runLink(run)}`)}${more > 0 && ` and ${more} more`}</span
    >`;
}
