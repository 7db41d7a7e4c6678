import { alertPages } from "../../dashboard/pages/alerts/alert-routes.ts";
import type { PageGroup } from "../../dashboard/page-group.ts";
import { alertSettings } from "../alerts.ts";
import type { Runtime } from "../runtime.ts";

export const alertPagesOf = (runtime: Pick<Runtime, "config">): PageGroup =>
  alertPages({
    runbooksUrl: runtime.config.runbooksUrl,
    deps: ({ db, clock }) => ({ db, clock, settings: () => alertSettings(runtime) }),
  });
