import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { dunningPages } from "./dunning-routes.ts";
import { dunningDefaults } from "../../../core/mirror/dunning/stages.ts";
import type { Runtime } from "../../../app/runtime.ts";

/**
 * The pages about declined renewals: by the settings of the alerts and the definitions of the reports, so that all
 * agree; without these parts, by the defaults, and without a funnel.
 */
export function dunningPagesOf({ ask }: Pick<Runtime, "ask">): PageGroup {
  const funnelOfMonth = ask.funnelOfMonth;
  return dunningPages({
    settings: async () => (await ask.dunningSettings?.()) ?? dunningDefaults,
    ...(funnelOfMonth === undefined ? {} : { funnel: (db, month, timeZone) => funnelOfMonth(db, { month, timeZone }) }),
  });
}
