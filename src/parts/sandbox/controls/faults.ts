import type Router from "@koa/router";
import { z } from "zod";
import { invalidValue, isKnownCode } from "../engine/api-error.ts";
import { faultsSchema } from "../engine/faults.ts";
import { settingsSchema } from "../engine/settings.ts";
import { validate } from "../http/read-request.ts";
import { type ControlDeps, addControl, nothing } from "./control.ts";

/** `GET|PUT /_sandbox/faults`: PUT replaces all faults; a fault that is left out is off. */
export function addFaults(router: Router, { state }: ControlDeps): void {
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
export function addSettings(router: Router, { state }: ControlDeps): void {
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
