import { tallyhook } from "../../../platform/command-line.ts";
import { listProofs, provedParts } from "../coverage/proof.ts";
import { sumOpenFindings } from "../findings/search-findings.ts";
import type { PageDeps, Route } from "../../../app/dashboard/route.ts";
import { type CalendarMonth, boundsOf, calendarOf, monthOf } from "./calendar.ts";
import { renderCalendar } from "./calendar-view.ts";
import { framed } from "./frame.ts";
import { type Trust, gapText, renderTrust, trustOf } from "./trust.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { time, timeText, withWholeMoments } from "../../../app/dashboard/elements/values.ts";
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
