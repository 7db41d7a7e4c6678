import type { PageGroup } from "../../app/dashboard/page-group.ts";
import { handlerPagesFor } from "../../parts/delivery/pages/handler-routes.ts";
import { destinationNamed } from "../../parts/delivery/forward/destination-name.ts";

/** Of handlers and destinations alike: one a line, which a room that is deleted takes along (docs/extend.md). */
export const handlerPages: PageGroup = handlerPagesFor({
  hasHandlers: true,
  destinationOf: destinationNamed,
});
