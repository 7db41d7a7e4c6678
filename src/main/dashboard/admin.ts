import type { PageGroup } from "../../app/dashboard/page-group.ts";
import { adminPages } from "../../app/dashboard/pages/admin/admin-pages.ts";
import type { Runtime } from "../../app/runtime.ts";

/** The checks are loaded when somebody asks for them. They use the runtime's own connections, without the pages' limit. */
export const adminPagesOf = (runtime: Runtime): PageGroup =>
  adminPages({
    url: dashboardUrl(runtime),
    settings: runtime.settings,
    examine: async () => (await import("../cli/doctor/doctor.ts")).examine(runtime),
  });

/** Where people reach the dashboard. */
const dashboardUrl = ({ config: { dashboard } }: Pick<Runtime, "config">): string =>
  dashboard.publicUrl ?? `http://127.0.0.1:${dashboard.port}`;
