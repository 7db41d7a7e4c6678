import { dayIn } from "../../../platform/local-time.ts";
import { nextMonth, readMonthState } from "../close/month-state.ts";
import { readCloses } from "../close/verify.ts";
import type { PageGroup, SummaryCard } from "../../../app/dashboard/page-group.ts";
import type { PageDeps } from "../../../app/dashboard/route.ts";
import { ago } from "../../../app/dashboard/elements/values.ts";
import { closeRoutes, headlineOf } from "./close-routes.ts";
import { monthAddress, monthName } from "./close-view.ts";
import type { ReportDesk } from "./report-desk.ts";
import { reportRoutes } from "./report-routes.ts";

/** Any report, and the close of a month. */
export const reportsPages = (desk: ReportDesk): PageGroup => ({
  place: { path: "/reports", name: "Reports", access: "report:read", area: "Money" },
  // The closes first: `close` is no name of a report.
  routes: [...closeRoutes(desk), ...reportRoutes(desk)],
  summary: { access: "report:read", read: readSummary },
});

/** The state of the next month to close; the last closed one while that has not ended. */
async function readSummary({ db, timeZone, clock }: PageDeps): Promise<SummaryCard> {
  const month = await nextMonth(db, dayIn(timeZone, clock.now()));
  const state = await readMonthState(db, month, timeZone);
  const { headline, tone } = headlineOf(state);
  const last = (await readCloses(db)).at(-1);
  const name = monthName(month);
  const { preparation, checks } = state;
  const open = checks.filter(({ isMet }) => isMet === false);
  const isOver = !open.some(({ check }) => check === "over");
  const path = monthAddress(month);
  const done = checks.filter(({ isMet }) => isMet === true).length;
  const reasons = !isOver
    ? []
    : preparation !== null
      ? [
          {
            text: `${name} is prepared by ${preparation.preparedBy.name} and waits to be closed.`,
            path,
            next: "Close it",
          },
        ]
      : open.length > 0
        ? [{ text: `${name} is over and cannot be closed yet.`, path, next: "See what hinders" }]
        : [{ text: `${name} is over and can be prepared for its close.`, path, next: "Prepare it" }];
  return {
    title: "Close",
    path,
    tile: "Month",
    top: { stat: name, about: `${done} of ${checks.length} checks done` },
    tone,
    headline,
    facts: [
      ...(preparation === null
        ? []
        : [
            { name: "Prepared by", value: preparation.preparedBy.name },
            { name: "Prepared", value: ago(preparation.preparedAt, timeZone) },
          ]),
      {
        name: "Closed until",
        value: last === undefined ? "no month is closed" : monthName(last.facts.month),
      },
    ],
    reasons,
  };
}
