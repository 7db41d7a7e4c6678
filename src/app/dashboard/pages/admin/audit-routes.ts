import { auditList } from "../../../people/audit-list.ts";
import { listRoute } from "../../list-route.ts";
import type { Route } from "../../route.ts";
import { renderAudit } from "./audit-view.ts";
import { tabs } from "./sections.ts";

export const auditRoutes: readonly Route[] = [
  listRoute({
    list: auditList,
    title: "Audit",
    access: "audit:read",
    head: (_, { visitor }) => tabs(visitor, auditList.path),
    table: renderAudit,
  }),
];
