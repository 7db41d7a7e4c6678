import { alertsRoom } from "./rooms/alerts.ts";
import { endpointRoom } from "./rooms/endpoint.ts";
import { forwardRoom } from "./rooms/forward.ts";
import { handlersRoom } from "./rooms/handlers.ts";
import type { OptionalRooms } from "./rooms/room-interfaces.ts";
import { reportsRoom } from "./rooms/reports.ts";
import { sandboxRoom } from "../parts/sandbox/sandbox-part.ts";

/** Rooms that can be deleted together with their lines here and in commands.ts (docs/extend.md). */
export const optionalRooms: OptionalRooms = {
  sandbox: sandboxRoom,
  endpoint: endpointRoom,
  reports: reportsRoom,
  alerts: alertsRoom,
  handlers: handlersRoom,
  forward: forwardRoom,
};
