import type Router from "@koa/router";
import { z } from "zod";

import { changeSilently, silentResources } from "../operations/change-silently.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { place, spaceAt } from "./places.ts";

const change = z.strictObject({
  resource: z.enum(silentResources),
  id: z.string(),
  set: z.record(z.string(), z.unknown()),
  ...place,
});

/** `POST /_sandbox/silent`: a change without an event. */
export function addSilent(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/silent",
    query: nothing,
    body: change,
    run({ body }) {
      const { id, updated_at } = changeSilently(spaceAt(state(), body), body);
      return { resource: body.resource, id, updated_at };
    },
  });
}
