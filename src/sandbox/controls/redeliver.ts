import type Router from "@koa/router";

import { deliveryBody } from "../delivery/delivery.ts";
import { notFound } from "../refusal.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";

/**
 * `POST /_sandbox/deliveries/{id}/redeliver`: the same event to the same endpoint once more, with a fresh signature; also what was
 * lost, failed or accepted. Answers when it was answered.
 */
export function addRedeliver(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/deliveries/:id/redeliver",
    query: nothing,
    body: nothing,
    async run({ params }) {
      const { dispatcher } = state();
      const delivery = dispatcher.redeliver(params["id"] ?? "");
      if (delivery === undefined) throw notFound("delivery");
      await dispatcher.quiet();
      return deliveryBody(delivery);
    },
  });
}
