import type { PageGroup } from "../../page-group.ts";
import { auditRoutes } from "./audit-routes.ts";
import { type Finding, type ShownSetting, setupRoutes } from "./setup-routes.ts";
import { renderSections } from "./sections.ts";
import { userRoutes } from "./user-routes.ts";

export interface AdminDeps {
  /** The address at which people reach the dashboard, for links that sign in. */
  url: string;
  /** Every setting in force. */
  settings: readonly ShownSetting[];
  /** Runs all checks; takes seconds. */
  examine(): Promise<readonly Finding[]>;
}

/** Users, sessions, the audit, settings, and the doctor. */
export const adminPages = ({ url, settings, examine }: AdminDeps): PageGroup => ({
  place: { path: "/admin", name: "Admin", access: "setting:read", area: "Plumbing" },
  routes: [
    {
      method: "GET",
      path: "/admin",
      access: "setting:read",
      answer: async (_, { visitor }) => ({
        kind: "page",
        title: "Admin",
        body: renderSections(visitor),
      }),
    },
    ...userRoutes({ url }),
    ...auditRoutes,
    ...setupRoutes({ settings, examine }),
  ],
});
