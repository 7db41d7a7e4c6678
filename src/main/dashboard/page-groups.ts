import type { PageGroup } from "../../app/dashboard/page-group.ts";
import { homePages } from "../../app/dashboard/pages/home/home-routes.ts";
import { mePages } from "../../app/dashboard/pages/me/me-routes.ts";
import { objectPages } from "../../parts/browse/objects/object-routes.ts";
import { type SignIns, signInPages } from "../../app/dashboard/pages/sign-in/sign-in-routes.ts";
import type { Runtime } from "../../app/runtime.ts";
import { adminPagesOf } from "./admin.ts";
import { alertPagesOf } from "./alerts.ts";
import { deliveryPagesOf } from "./deliveries.ts";
import { endpointPagesOf } from "./endpoint.ts";
import { eventPagesOf } from "./events.ts";
import { handlerPages } from "./handlers.ts";
import { dunningPagesOf } from "./dunning.ts";
import { reconciliationPagesOf } from "./reconciliation.ts";
import { reportPagesOf } from "./reports.ts";
import { chargebackPagesOf } from "./chargebacks.ts";

/** Where the service is; absent: as the settings say. */
export type ServiceLocation = Parameters<Runtime["serviceClient"]>[0];

/** Every page of the dashboard, in the order in which they stand at its side. */
export function pageGroups(runtime: Runtime, signIns: SignIns, service?: ServiceLocation): readonly PageGroup[] {
  const groups = [
    // One a line: a room that is deleted takes its line along (docs/extend.md).
    eventPagesOf(runtime),
    objectPages,
    deliveryPagesOf(runtime),
    endpointPagesOf(runtime, service),
    reconciliationPagesOf(runtime, service),
    dunningPagesOf(runtime),
    chargebackPagesOf(runtime),
    alertPagesOf(runtime),
    reportPagesOf(runtime),
    handlerPages,
    adminPagesOf(runtime),
  ];
  return [signInPages(signIns), mePages, homePages(groups), ...groups];
}
