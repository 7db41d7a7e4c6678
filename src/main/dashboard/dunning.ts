import type { PageGroup } from "../../dashboard/page-group.ts";
import { dunningPages } from "../../dashboard/pages/dunning/dunning-routes.ts";
import { dunningDefaults } from "../../mirror/dunning/stages.ts";
import { optionalRooms } from "../optional-rooms.ts";
import type { Runtime } from "../runtime.ts";

/** The pages about declined renewals, by the settings of the alerts, so that both say the same. */
export const dunningOf = (runtime: Runtime): PageGroup =>
  dunningPages({
    settings: async () => (await optionalRooms.alerts?.dunning(runtime)) ?? dunningDefaults,
  });
