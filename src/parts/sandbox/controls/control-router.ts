import Router from "@koa/router";
import { addClock, addIdle, addJobs } from "./clock.ts";
import { type ControlDeps, addControl, assertLocal, nothing, place, seed, spaceAt } from "./control.ts";
import { addDeliveries, addEvents, addOutbox, addRedeliver, addSignatureCheck } from "./deliveries.ts";
import { addAccount, addKeys, addMerchants } from "./merchants.ts";
import { addOrderControls, addPlans, addTeamMembers, addTokens } from "./outside-the-api.ts";
import { addOverview, addReset, addSnapshot, clockBody } from "./overview.ts";
import { addSilent } from "./silent-change.ts";
import { z } from "zod";
import { invalidValue, isKnownCode } from "../engine/api-error.ts";
import { faultsSchema } from "../engine/faults.ts";
import { settingsSchema } from "../engine/settings.ts";
import { validate } from "../http/read-request.ts";
import { generateTraffic } from "../traffic/generate.ts";

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

/** `GET|PUT /_sandbox/faults`: PUT replaces all faults; a fault that is left out is off. */
function addFaults(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/faults",
    query: nothing,
    body: nothing,
    run: () => state().faults,
  });
  addControl(router, {
    method: "PUT",
    path: "/faults",
    query: nothing,
    body: faultsSchema,
    run({ body }) {
      const unknown = body.api.force.find(({ code }) => !isKnownCode(code));
      if (unknown !== undefined) throw invalidValue("api.force", `no code ${unknown.code}`);
      state().setFaults(body);
      return state().faults;
    },
  });
}

/** `GET|PUT /_sandbox/switches`: PUT changes the given settings; the others stay as they are. */
function addSettings(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/switches",
    query: nothing,
    body: nothing,
    run: () => state().settings,
  });
  addControl(router, {
    method: "PUT",
    path: "/switches",
    query: nothing,
    body: z.record(z.string(), z.unknown()),
    run({ body }) {
      const current = state();
      current.settings = validate(settingsSchema, { ...current.settings, ...body });
      return current.settings;
    },
  });
}

const most = 1_000_000;
const howMany = z.int().min(0).max(most);

const wish = z.strictObject({
  orders: howMany.default(100),
  subscriptions: howMany.default(10),
  refunds: howMany.optional(),
  declines: howMany.optional(),
  chargebacks: howMany.optional(),
  seed: seed.default("1"),
  days: z.number().min(0).max(3660).default(30),
  past: z.boolean().default(false),
  tie_rate: z.number().min(0).max(1).default(0.02),
  ...place,
});

/** The default shares of the orders, where the request gives no number. */
const usual = { refunds: 0.08, declines: 0.06, chargebacks: 0.015 };

/**
 * `POST /_sandbox/traffic`: generates a seeded, realistic mix. Answers when it is generated; `GET /_sandbox/idle` waits
 * for its deliveries.
 */
function addTraffic(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/traffic",
    query: nothing,
    body: wish,
    async run({ body }) {
      const current = state();
      const { orders, tie_rate, merchant, mode, ...rest } = body;
      const result = await generateTraffic(current, spaceAt(current, { merchant, mode }), {
        ...rest,
        orders,
        refunds: body.refunds ?? Math.round(orders * usual.refunds),
        declines: body.declines ?? Math.round(orders * usual.declines),
        chargebacks: body.chargebacks ?? Math.round(orders * usual.chargebacks),
        tieRate: tie_rate,
      });
      return { seed: body.seed, ...result, ...clockBody(current) };
    },
  });
}
