import { alertPages } from "../../parts/alerts/pages/alert-routes.ts";
import type { PageGroup } from "../../app/dashboard/page-group.ts";
import { alertSettings } from "../../parts/alerts/run-alerts.ts";
import type { Runtime } from "../../app/runtime.ts";

export const alertPagesOf = (runtime: Pick<Runtime, "config">): PageGroup =>
  alertPages({
    runbooksUrl: runtime.config.runbooksUrl,
    deps: ({ db, clock }) => ({ db, clock, settings: () => alertSettings(runtime) }),
  });
