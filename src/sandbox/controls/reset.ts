import type Router from "@koa/router";
import { z } from "zod";

import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing, seed } from "./fields.ts";
import { clockBody } from "./overview.ts";

/** `POST /_sandbox/reset`: a new, empty sandbox on a running clock, with the same seed unless another is given. */
export function addReset(router: Router, deps: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/reset",
    query: nothing,
    body: z.strictObject({ seed: seed.optional() }),
    run({ body }) {
      deps.reset(body.seed);
      const current = deps.state();
      return { ...clockBody(current), seed: current.seed };
    },
  });
}
