import type { PageGroup } from "../../dashboard/page-group.ts";
import { eventPages } from "../../dashboard/pages/events/event-routes.ts";
import { watchChanges } from "../../feed/changes.ts";
import { once } from "../../platform/once.ts";
import { previewEvent } from "../../worker/preview-event.ts";
import { optionalRooms } from "../optional-rooms.ts";
import { createListener } from "../reconciliation.ts";
import type { Runtime } from "../runtime.ts";

/** The pages of events. What a preview writes and takes back is told to the same listener as what a worker writes. */
export function eventPagesOf(runtime: Runtime): PageGroup {
  const { config, log, wallClock: clock, serviceClock } = runtime;
  const listener = once(() => createListener(runtime));
  return eventPages({
    places: config.eventPlaces,
    alertsAt: optionalRooms.alerts?.told.at ?? null,
    async preview(db, seq) {
      const deps = {
        db,
        log,
        places: config.eventPlaces,
        clock,
        serviceClock,
        listener: await listener(),
        isClockMovable: config.service.kind === "sandbox",
      };
      return previewEvent(deps, seq, async (trx) => {
        const changes = await watchChanges(trx);
        const alerts = await optionalRooms.alerts?.told.watch(trx);
        return async () => ({ changes: await changes(), alerts: (await alerts?.()) ?? null });
      });
    },
  });
}
