import type { ServiceLocation } from "../../../app/answers.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { reconciliationPages } from "./reconciliation-pages.ts";
import { nextDue } from "../../../platform/cron.ts";
import { once } from "../../../platform/once.ts";
import { listenerOf, type Runtime } from "../../../app/runtime.ts";

/** The pages of reconciliation, with the schedule of this deployment and its service. */
export function reconciliationPagesOf(runtime: Runtime, service?: ServiceLocation): PageGroup {
  const { config, random } = runtime;
  const { timeZone } = config;
  return reconciliationPages({
    nextRun: (now) => nextDue(config.reconcile.cron, { timeZone, now }),
    heal: once(async () => ({
      client: runtime.serviceClient(service),
      random,
      listener: await listenerOf(runtime),
    })),
  });
}
