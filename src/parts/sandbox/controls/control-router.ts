import Router from "@koa/router";
import { addClock, addIdle, addJobs } from "./clock.ts";
import { type ControlDeps, assertLocal } from "./control.ts";
import { addDeliveries, addEvents, addOutbox, addRedeliver, addSignatureCheck } from "./deliveries.ts";
import { addFaults, addSettings } from "./faults.ts";
import { addAccount, addKeys, addMerchants } from "./merchants.ts";
import { addOrderControls, addPlans, addTeamMembers, addTokens } from "./outside-the-api.ts";
import { addOverview, addReset, addSnapshot } from "./overview.ts";
import { addSilent } from "./silent-change.ts";
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
    addMerchants,
    addKeys,
    addPlans,
    addTokens,
    addJobs,
    addFaults,
    addSettings,
    addDeliveries,
    addRedeliver,
    addSignatureCheck,
    addEvents,
    addTraffic,
    addSnapshot,
    addIdle,
    addSilent,
    addOrderControls,
    addOutbox,
    addTeamMembers,
    addAccount,
  ]) {
    add(router, deps);
  }
  return router;
}
