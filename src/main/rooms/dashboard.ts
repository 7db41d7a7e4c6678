import type { DashboardRoom } from "./room-interfaces.ts";

/** Loaded on demand: only two commands serve pages. */
export const dashboardRoom: DashboardRoom = {
  async start(runtime, role) {
    const { ownersLink, runDashboard } = await import("../dashboard/run-dashboard.ts");
    return { signInLink: await ownersLink(runtime, (await runDashboard(runtime, role)).url) };
  },
};
