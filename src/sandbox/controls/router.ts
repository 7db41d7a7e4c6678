import Router from "@koa/router";

import { addClock } from "./clock.ts";
import type { ControlDeps } from "./control.ts";
import { assertLocal } from "./control.ts";
import { addFaults, addSwitches } from "./faults.ts";
import { addIdle } from "./idle.ts";
import { addKeys } from "./keys.ts";
import { addDeliveries, addEvents } from "./logs.ts";
import { addOrderControls } from "./order-controls.ts";
import { addOverview } from "./overview.ts";
import { addReset } from "./reset.ts";
import { addSilent } from "./silent.ts";
import { addSnapshot } from "./snapshot.ts";
import { addTraffic } from "./traffic.ts";

/** The controls under `/_sandbox`. A new control adds its file here. */
export function createControlRouter(deps: ControlDeps): Router {
  const router = new Router({ prefix: "/_sandbox" });
  router.use(async (ctx, next) => {
    assertLocal(ctx);
    await next();
  });
  for (const add of [
    addOverview,
    addReset,
    addClock,
    addKeys,
    addFaults,
    addSwitches,
    addDeliveries,
    addEvents,
    addTraffic,
    addSnapshot,
    addIdle,
    addSilent,
    addOrderControls,
  ]) {
    add(router, deps);
  }
  return router;
}
