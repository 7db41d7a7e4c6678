import type Router from "@koa/router";
import { z } from "zod";

import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { latest, nothing } from "./fields.ts";
import { place, spaceAt } from "./places.ts";

/** `GET /_sandbox/outbox`: the latest messages that the service would have mailed, oldest first. */
export function addOutbox(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/outbox",
    query: z.object({ limit: latest, to: z.string().optional(), ...place }),
    body: nothing,
    run({ query: { limit, to, ...where } }) {
      const { outbox } = spaceAt(state(), where);
      const wanted = outbox.all().filter((message) => to === undefined || message.to === to);
      return { data: limit === 0 ? [] : wanted.slice(-limit), total: outbox.size };
    },
  });
}
