import type { PageGroup } from "../../app/dashboard/page-group.ts";
import { dunningPages } from "../../parts/browse/dunning/dunning-routes.ts";
import { dunningDefaults } from "../../core/mirror/dunning/stages.ts";
import { optionalRooms } from "../optional-rooms.ts";
import type { Runtime } from "../../app/runtime.ts";

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
