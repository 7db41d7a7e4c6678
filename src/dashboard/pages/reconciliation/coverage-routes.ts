import type { Knex } from "knex";
import {
  type LocalTime,
  beginningOfDay,
  dayText,
  localTimeIn,
} from "../../../platform/local-time.ts";
import { gapsOf } from "../../../reconcile/coverage/coverage.ts";
import { dayOf, listProofs, provedParts } from "../../../reconcile/coverage/proof.ts";
import { boundText, slicedResources } from "../../../reconcile/coverage/slice.ts";
import { sumOpenFindings } from "../../../reconcile/findings/search-findings.ts";
import type { PageDeps, Route } from "../../route.ts";
import { type CalendarDay, type CalendarMonth, renderCoverage } from "./coverage-view.ts";
import { framed } from "./frame.ts";
import { type Trust, trustOf } from "./trust.ts";

export const coverageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/reconciliation",
    access: "status:read",
    async answer(deps, { query }) {
      const { db, timeZone, serviceClock } = deps;
      const now = serviceClock.now();
      const month = monthOf(query.get("month"), now, timeZone);
      const [trust, calendar] = await Promise.all([
        readTrust(deps),
        readMonth(db, month, { now, timeZone }),
      ]);
      return {
        kind: "page",
        title: "Reconciliation",
        body: framed("Coverage", renderCoverage({ trust, month: calendar, timeZone })),
        command: "node src/bin/tallyhook.js reconcile --dry-run",
      };
    },
  },
];

/** What may be said of the mirror now. Two statements. */
export async function readTrust({
  db,
  serviceClock,
  timeZone,
}: Pick<PageDeps, "db" | "serviceClock" | "timeZone">): Promise<Trust> {
  const now = serviceClock.now();
  const [proofs, open] = await Promise.all([listProofs(db, now), sumOpenFindings(db)]);
  return trustOf({ proofs, open, now, timeZone });
}

type Month = Pick<LocalTime, "year" | "month">;

/** The month that an address names; that of `now` where it names none, or one to come. Pure. */
function monthOf(text: string | null, now: Date, timeZone: string): Month {
  const { year, month } = localTimeIn(timeZone)(now);
  const [, y, m] = /^([12]\d{3})-(0[1-9]|1[0-2])$/.exec(text ?? "") ?? [];
  const named = { year: Number(y), month: Number(m) };
  const isPast = named.year < year || (named.year === year && named.month <= month);
  return y !== undefined && isPast ? named : { year, month };
}

async function readMonth(
  db: Knex,
  { year, month }: Month,
  { now, timeZone }: { now: Date; timeZone: string },
): Promise<CalendarMonth> {
  const start = beginningOfDay({ year, month, day: 1 }, timeZone);
  const end = beginningOfDay({ year, month: month + 1, day: 1 }, timeZone);
  const parts = await provedParts(db, { from: start, before: end, now });
  const fresh = parts.filter(({ isFresh }) => isFresh);
  const until = boundText(end < now ? end : now);
  const current = localTimeIn(timeZone)(now);
  const isCurrent = current.year === year && current.month === month;
  return {
    name: monthName({ year, month }),
    earlier: monthText({ year, month: month - 1 }),
    later: isCurrent ? null : monthText({ year, month: month + 1 }),
    resources: slicedResources,
    days: daysOf({ year, month }).map((day): CalendarDay => ({
      name: `${weekdays[new Date(Date.UTC(year, month - 1, day)).getUTCDay()] ?? ""} ${day}`,
      date: dayText({ year, month, day }),
      lists: slicedResources.map((resource) =>
        dayOf(parts, {
          resource,
          from: beginningOfDay({ year, month, day }, timeZone),
          before: beginningOfDay({ year, month, day: day + 1 }, timeZone),
          now,
        }),
      ),
    })),
    gaps: slicedResources.flatMap((resource) =>
      gapsOf(fresh, resource, { from: boundText(start), until }),
    ),
    now,
  };
}

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

const daysOf = ({ year, month }: Month): number[] =>
  Array.from({ length: new Date(Date.UTC(year, month, 0)).getUTCDate() }, (_, n) => n + 1);

/** `2026-11`; a month out of range rolls over. */
function monthText({ year, month }: Month): string {
  return new Date(Date.UTC(year, month - 1, 1)).toISOString().slice(0, 7);
}

const monthName = ({ year, month }: Month): string =>
  new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", month: "long", year: "numeric" }).format(
    Date.UTC(year, month - 1, 1),
  );
