import { accountRoutes } from "./pages/me/me-routes.ts";
import { eventRoutes } from "./pages/events/event-routes.ts";
import { homeRoutes } from "./pages/home/home-routes.ts";
import { type SignIns, signInRoutes } from "./pages/sign-in/sign-in-routes.ts";
import type { Route } from "./route.ts";

/** Every route of the dashboard: what tests go through, role by role. */
export const allRoutes = (signIns: SignIns): readonly Route[] => [
  ...signInRoutes(signIns),
  ...accountRoutes,
  ...homeRoutes,
  ...eventRoutes,
];
