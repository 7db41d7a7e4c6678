import type { PageGroup } from "../../dashboard/page-group.ts";
import { dunningPages } from "../../dashboard/pages/dunning/dunning-routes.ts";
import { dunningDefaults } from "../../mirror/dunning/stages.ts";
import { optionalRooms } from "../optional-rooms.ts";
import type { Runtime } from "../runtime.ts";

/**
 * The pages about declined renewals: by the settings of the alerts and the definitions of the reports, so that all say
 * the same; without these rooms, by the defaults, and without a funnel.
 */
export function dunningPagesOf(runtime: Runtime): PageGroup {
  const funnelOfMonth = optionalRooms.reports?.funnelOfMonth;
  return dunningPages({
    settings: async () => (await optionalRooms.alerts?.dunning(runtime)) ?? dunningDefaults,
    ...(funnelOfMonth === undefined ? {} : { funnel: (db, month, timeZone) => funnelOfMonth(db, { month, timeZone }) }),
  });
}
