import type { Funnel } from "../../../mirror/dunning/funnel.ts";
import type { Knex } from "knex";
import {
  type DeclinedRenewal,
  recoveredRenewals,
  unpaidRenewals,
} from "../../../mirror/dunning/renewals.ts";
import type { DunningSettings } from "../../../mirror/dunning/stages.ts";
import { readCases } from "../../../people/cases.ts";
import { beginningOfDay, localTimeIn } from "../../../platform/local-time.ts";
import type { PageDeps } from "../../route.ts";
import { type BoardCard, cardOf } from "./board.ts";

/** What the pages need beside the mirror. */
export interface DunningParts {
  settings(): Promise<DunningSettings>;
  /** What became of the declines of a month, such as `2026-11`; absent without reports. */
  funnel?(db: Knex, month: string, timeZone: string): Promise<Funnel>;
}

/** How many renewals the board reads; more is a fault that no board helps with. */
const mostRenewals = 5_000;

/** What the mirror has of the board, apart from who looks after it. */
export interface BoardRenewals {
  unpaid: DeclinedRenewal[];
  recovered: DeclinedRenewal[];
}

/** Two statements, which look at the declined orders of months. */
export async function readRenewals({
  db,
  serviceClock,
  timeZone,
}: Pick<PageDeps, "db" | "serviceClock" | "timeZone">): Promise<BoardRenewals> {
  const now = serviceClock.now();
  const since = beginningOfMonth(now, timeZone);
  const [unpaid, recovered] = await Promise.all([
    unpaidRenewals(db, { now, limit: mostRenewals + 1 }),
    recoveredRenewals(db, { since, limit: mostRenewals + 1 }),
  ]);
  return { unpaid, recovered };
}

/** Everything on the board, with who looks after it now. One statement. */
export async function readBoard(
  { db, serviceClock }: Pick<PageDeps, "db" | "serviceClock">,
  settings: DunningSettings,
  { unpaid, recovered }: BoardRenewals,
): Promise<{ cards: BoardCard[]; isCut: boolean }> {
  const now = serviceClock.now();
  const renewals = [...unpaid.slice(0, mostRenewals), ...recovered.slice(0, mostRenewals)];
  const cases = await readCases(
    db,
    "dunning",
    renewals.map(({ orderId }) => orderId),
  );
  return {
    cards: renewals.map((renewal) =>
      cardOf(renewal, cases.get(renewal.orderId), { settings, now }),
    ),
    isCut: unpaid.length > mostRenewals || recovered.length > mostRenewals,
  };
}

function beginningOfMonth(at: Date, timeZone: string): Date {
  const { year, month } = localTimeIn(timeZone)(at);
  return beginningOfDay({ year, month, day: 1 }, timeZone);
}
