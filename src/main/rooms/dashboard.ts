import type { DashboardRoom } from "./room-interfaces.ts";

/** Loaded on demand: only two commands serve pages. */
export const dashboardRoom: DashboardRoom = {
  async start(runtime, service) {
    const { ownersLink, runDashboard } = await import("../dashboard/run-dashboard.ts");
    return { signInLink: await ownersLink(runtime, (await runDashboard(runtime, service)).url) };
  },
};
