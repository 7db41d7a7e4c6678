import type { PageGroup } from "../../../../app/dashboard/page-group.ts";
import { eventPages } from "./event-routes.ts";
import { watchChanges } from "../../../../core/mirror/changes/read-changes.ts";
import { once } from "../../../../platform/once.ts";
import { previewEvent } from "../../../../core/worker/preview-event.ts";
import { listenerOf, type Runtime } from "../../../../app/runtime.ts";

/** The pages of events. A preview's writes are reported to the same listener as a worker's. */
export function eventPagesOf(runtime: Runtime): PageGroup {
  const { ask, config, log, wallClock: clock, serviceClock } = runtime;
  const listener = once(() => listenerOf(runtime));
  return eventPages({
    places: config.eventPlaces,
    alertsAt: ask.alertsAt ?? null,
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
        const alerts = await ask.watchAlerts?.(trx);
        return async () => ({ changes: await changes(), alerts: (await alerts?.()) ?? null });
      });
    },
  });
}
