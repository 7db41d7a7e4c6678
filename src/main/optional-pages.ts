import type { DashboardRoom } from "./rooms/room-interfaces.ts";
import { dashboardRoom } from "./rooms/dashboard.ts";

/** The room that shows the others. Apart from them, since its pages ask which of them are there (docs/extend.md). */
export const optionalPages: { readonly dashboard?: DashboardRoom } = {
  dashboard: dashboardRoom,
};
