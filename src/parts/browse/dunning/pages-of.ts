import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { dunningPages } from "./dunning-routes.ts";
import { dunningDefaults } from "../../../core/mirror/dunning/stages.ts";
import { createBeside } from "../../../app/dashboard/elements/beside-page.ts";
import type { WeekOfDeclines } from "../../../core/mirror/dunning/funnel.ts";
import { lastMondays } from "./weeks.ts";
import type { Runtime } from "../../../app/runtime.ts";

/**
 * The pages about declined renewals: by the settings of the alerts and the definitions of the reports, so that all
 * agree; without these parts, by the defaults, and without a funnel.
 */
export function dunningPagesOf({ ask, log }: Pick<Runtime, "ask" | "log">): PageGroup {
  const { funnelOfMonth, declinesByWeek } = ask;
  const failed = "the declines by week could not be summed up";
  const beside = createBeside<WeekOfDeclines[]>({ log, waitsMs: 50, failed });
  return dunningPages({
    settings: async () => (await ask.dunningSettings?.()) ?? dunningDefaults,
    ...(funnelOfMonth === undefined ? {} : { funnel: (db, month, timeZone) => funnelOfMonth(db, { month, timeZone }) }),
    ...(declinesByWeek === undefined
      ? {}
      : {
          weeks: (db, now, timeZone) =>
            beside(now, () => declinesByWeek(db, { mondays: lastMondays(now, timeZone), timeZone })),
        }),
  });
}
