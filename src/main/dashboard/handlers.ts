import type { PageGroup } from "../../dashboard/page-group.ts";
import { handlerPagesFor } from "../../dashboard/pages/handlers/handler-routes.ts";
import { destinationNamed } from "../../forward/destination-name.ts";

/** Of handlers and destinations alike: one a line, which a room that is deleted takes along (docs/extend.md). */
export const handlerPages: PageGroup = handlerPagesFor({
  hasHandlers: true,
  destinationOf: destinationNamed,
});
