import Router from "@koa/router";

import { addAccount } from "./account.ts";
import { addClock } from "./clock.ts";
import type { ControlDeps } from "./control.ts";
import { assertLocal } from "./control.ts";
import { addFaults, addSwitches } from "./faults.ts";
import { addIdle } from "./idle.ts";
import { addJobs } from "./jobs.ts";
import { addKeys } from "./keys.ts";
import { addDeliveries, addEvents } from "./logs.ts";
import { addMerchants } from "./merchants.ts";
import { addOrderControls } from "./order-controls.ts";
import { addOutbox } from "./outbox.ts";
import { addOverview } from "./overview.ts";
import { addPlans } from "./plans.ts";
import { addRedeliver } from "./redeliver.ts";
import { addReset } from "./reset.ts";
import { addSignatureCheck } from "./signature-check.ts";
import { addSilent } from "./silent.ts";
import { addSnapshot } from "./snapshot.ts";
import { addTeamMembers } from "./team-members.ts";
import { addTokens } from "./tokens.ts";
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
    addSwitches,
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
