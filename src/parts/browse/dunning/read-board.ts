import type { Beside } from "../../../app/dashboard/elements/beside-page.ts";
import type { Funnel, WeekOfDeclines } from "../../../core/mirror/dunning/funnel.ts";
import type { Knex } from "knex";
import { type DeclinedRenewal, recoveredRenewals, unpaidRenewals } from "../../../core/mirror/dunning/renewals.ts";
import type { DunningSettings } from "../../../core/mirror/dunning/stages.ts";
import { readCases } from "../../../app/people/cases.ts";
import { beginningOfDay, localTimeIn } from "../../../platform/local-time.ts";
import type { PageDeps } from "../../../app/dashboard/route.ts";
import { type BoardCard, cardOf } from "./board.ts";

/** Dependencies of the pages in addition to the mirror. */
export interface DunningParts {
  settings(): Promise<DunningSettings>;
  /** Outcomes of the declines of a month, such as `2026-11`; absent without reports. */
  funnel?(db: Knex, month: string, timeZone: string): Promise<Funnel>;
  /** Outcomes of the declines of the last weeks; absent without reports. */
  weeks?(db: Knex, now: Date, timeZone: string): Promise<Beside<WeekOfDeclines[]>>;
}

/** The most renewals that the board reads; more is a fault beyond any board. */
const mostRenewals = 5_000;

type When = Pick<PageDeps, "db" | "serviceClock" | "timeZone">;

/** Renewals unpaid now, from the mirror. One statement. */
export const readUnpaid = ({ db, serviceClock }: Pick<When, "db" | "serviceClock">) =>
  unpaidRenewals(db, { now: serviceClock.now(), limit: mostRenewals + 1 });

/** Renewals recovered this month. One statement, which reads all sales of the month. */
export const readRecovered = ({ db, serviceClock, timeZone }: When) =>
  recoveredRenewals(db, {
    since: beginningOfMonth(serviceClock.now(), timeZone),
    limit: mostRenewals + 1,
  });

/** Cards of these renewals, with their assignees. One statement. */
export async function readCards(
  { db, serviceClock }: Pick<PageDeps, "db" | "serviceClock">,
  settings: DunningSettings,
  found: readonly (readonly DeclinedRenewal[])[],
): Promise<{ cards: BoardCard[]; isCut: boolean }> {
  const now = serviceClock.now();
  const renewals = found.flatMap((each) => each.slice(0, mostRenewals));
  const cases = await readCases(
    db,
    "dunning",
    renewals.map(({ orderId }) => orderId),
  );
  return {
    cards: renewals.map((renewal) => cardOf(renewal, cases.get(renewal.orderId), { settings, now })),
    isCut: found.some(({ length }) => length > mostRenewals),
  };
}

function beginningOfMonth(at: Date, timeZone: string): Date {
  const { year, month } = localTimeIn(timeZone)(at);
  return beginningOfDay({ year, month, day: 1 }, timeZone);
}
