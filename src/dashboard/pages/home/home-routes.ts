import { html } from "../../../platform/html.ts";
import type { Route } from "../../route.ts";

export const homeRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/",
    access: "status:read",
    answer: async () => ({ kind: "page", title: "Home", body: html`<p class="lead">…</p>` }),
  },
];
